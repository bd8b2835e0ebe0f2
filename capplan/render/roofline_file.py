"""A roofline as a PNG or SVG file, drawn by matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capplan.render import shows
from capplan.render.plot_file import write_figure
from capplan.render.roofline import RoofAxes, roof_axes
from capplan.results.roofline import RooflinePoint, RooflineResult
from capplan.units import TERA

# Okabe-Ito: told apart with any colour vision, and by shape without colour.
DECODE, PREFILL = "#D55E00", "#0072B2"


def write(result: RooflineResult, path: Path) -> None:
    """Draw the roofs and points to ``path``; raises CapplanError where it cannot be written."""
    write_figure(path, lambda axes: _draw(axes, result, roof_axes(result)))


def _draw(axes: Any, result: RooflineResult, roof: RoofAxes) -> None:
    for line, style, label in (
        (roof.ideal_roof, "-", "data sheet"),
        (roof.derated_roof, "--", "as measured"),
    ):
        xs, ys = zip(*line, strict=True)
        axes.plot(xs, ys, style, color="black", linewidth=1.6, label=label)
    _draw_decode(axes, [point for point in result.points if point.phase == "decode"])
    _draw_prefill(axes, [point for point in result.points if point.phase == "prefill"])
    axes.axvline(result.ridge_flop_per_byte, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(
        xscale="log",
        yscale="log",
        xlim=roof.intensity,
        ylim=roof.tflops,
        xlabel="operational intensity (FLOP/byte)",
        ylabel="attainable (TFLOP/s a GPU)",
    )
    # A name from a file may hold `$`, which would start a formula.
    axes.set_title(_title(result), parse_math=False)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(loc="lower right", frameon=False)


def _draw_decode(axes: Any, points: Sequence[RooflinePoint]) -> None:
    """Filled and labelled by batch at the shortest context, hollow at longer ones."""
    shortest = min(point.context_tokens for point in points)
    for label, fill, chosen in (
        (f"decode at {shortest:,} tokens", DECODE, [p for p in points if _is(p, shortest)]),
        ("decode at more", "white", [p for p in points if not _is(p, shortest)]),
    ):
        if not chosen:
            continue
        xs, ys = _coordinates(chosen)
        axes.plot(xs, ys, "o", color=DECODE, markerfacecolor=fill, markersize=8, label=label)
    for point in points:
        if _is(point, shortest):
            _label(axes, point, f"batch {point.num_sequences}", (8, -12), "left")


def _draw_prefill(axes: Any, points: Sequence[RooflinePoint]) -> None:
    xs, ys = _coordinates(points)
    axes.plot(xs, ys, "^", color=PREFILL, markersize=9, label="prefill, by tokens")
    for point in points:
        _label(axes, point, f"{point.context_tokens:,}", (0, 9), "center")


def _is(point: RooflinePoint, context_tokens: int) -> bool:
    return point.context_tokens == context_tokens


def _coordinates(points: Sequence[RooflinePoint]) -> tuple[list[float], list[float]]:
    xs = [point.intensity_flop_per_byte for point in points]
    return xs, [point.attainable_flop_per_s / TERA for point in points]


def _label(axes: Any, point: RooflinePoint, text: str, offset: tuple[int, int], side: str) -> None:
    (x,), (y,) = _coordinates([point])
    axes.annotate(text, (x, y), textcoords="offset points", xytext=offset, fontsize=8, ha=side)


def _title(result: RooflineResult) -> str:
    decode = [point for point in result.points if point.phase == "decode"]
    bound = {point.bound for point in decode}
    finding = f"decode is {bound.pop()}-bound" if len(bound) == 1 else "decode crosses the ridge"
    return (
        f"{result.model} in {result.dtype} on {result.hardware}: {finding} "
        f"(ridge {shows.number(result.ridge_flop_per_byte)} FLOP/byte)"
    )
