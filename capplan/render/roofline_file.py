"""A roofline as a PNG or SVG file, drawn by matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings

from capplan.errors import CapplanError, Location
from capplan.render import shows
from capplan.render.roofline import RoofAxes, roof_axes
from capplan.results.roofline import RooflinePoint, RooflineResult
from capplan.units import TERA

SUFFIXES = (".png", ".svg")
# Okabe-Ito: told apart with any colour vision, and by shape without colour.
DECODE, PREFILL = "#D55E00", "#0072B2"


def check_file(name: str) -> None:
    """Refuse, before any work, a file that could not be written; nothing is overwritten."""
    path = Path(name)
    location = Location(name)
    if "\0" in name or path.suffix.lower() not in SUFFIXES:
        raise CapplanError(
            "--plot writes .png and .svg files", location=location, hint="name it roofline.svg"
        )
    try:
        if path.exists():
            raise CapplanError(
                "the file exists", location=location, hint="remove it, or give another name"
            )
        if not path.parent.is_dir():
            raise CapplanError("there is no such folder", location=Location(str(path.parent)))
    except OSError as error:
        raise CapplanError(f"cannot be written: {error.strerror}", location=location) from None
    if find_spec("matplotlib") is None:
        raise CapplanError(
            "--plot needs matplotlib", hint="pip install 'capplan[plot]'; or leave out --plot"
        )


def write(result: RooflineResult, path: Path) -> None:
    """Draw the roofs and points to ``path``; raises CapplanError where it cannot be written."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Same input, same bytes: no date, no random ids.
    with mpl.rc_context({"svg.hashsalt": "capplan", "font.size": 11}):
        figure = Figure(figsize=(9, 5.6), layout="constrained")
        canvas = FigureCanvasSVG if path.suffix.lower() == ".svg" else FigureCanvasAgg
        canvas(figure)
        _draw(figure.add_subplot(), result, roof_axes(result))
        try:
            metadata: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
            # A letter that the font lacks becomes a box; a warning would help nobody.
            with catch_warnings(action="ignore", category=UserWarning):
                figure.savefig(path, dpi=160, metadata=metadata)
        except OSError as error:
            raise CapplanError(
                f"cannot be written: {error.strerror}", location=Location(str(path))
            ) from None


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
