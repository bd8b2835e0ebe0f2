"""The answer of `capplan roofline` as a screen, with a plot for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capplan.render import shows
from capplan.render.bands import durations
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.roofline import RooflineInputs, RooflineResult
from capplan.units import TERA

PLOT_HEIGHT = 20
MAX_PLOT_WIDTH = 110


def screen(
    result: RooflineResult, inputs: RooflineInputs, assumptions: Sequence[Assumption]
) -> Screen:
    return Screen(
        headline=_headline(result),
        tables=[_points(result), _bands(result)],
        notes=[_reading(result)],
        plot=lambda width: _plot(result, min(width, MAX_PLOT_WIDTH)),
        assumptions=assumptions,
        next_commands=[
            f"capplan gpus --qps 100 --model {inputs.model} --hardware {inputs.hardware}"
        ],
        tsv=_for_programs(result),
    )


def _headline(result: RooflineResult) -> str:
    gpus = f"{result.tp} x {result.hardware}" if result.tp > 1 else result.hardware
    return (
        f"{result.model} in {result.dtype} on {gpus}: the roof bends at "
        f"{shows.number(result.ridge_flop_per_byte)} FLOP/byte\n"
        f"({shows.flops(result.peak_flops_per_s)} dense {result.compute_format}, "
        f"{shows.bandwidth(result.bandwidth_bytes_per_s)}; a GPU)."
    )


def _points(result: RooflineResult) -> Table:
    columns = (
        Column("phase", "phase", right=False),
        Column("num_sequences", "batch", shows.count),
        Column("context_tokens", "context\ntokens", shows.count),
        Column("intensity_flop_per_byte", "FLOP per\nbyte", shows.number),
        Column("bound", "bound", right=False),
        Column("attainable_flop_per_s", "reach\nTFLOP/s", lambda v: shows.number(v / TERA)),
        Column("peak_fraction", "of peak", shows.share),
        Column("time_s", "shortest\ntime", shows.duration),
        Column("derated_time_s", "derated\ntime", shows.duration),
    )
    rows = [[getattr(point, column.key) for column in columns] for point in result.points]
    return Table("Prefill of one prompt; one decode step", columns, rows)


def _bands(result: RooflineResult) -> Table:
    """The time of each point with its band: no room is left beside the rest."""
    prefill, decode = result.bands
    columns = (
        Column("phase", "phase", right=False),
        Column("num_sequences", "batch", shows.count),
        Column("context_tokens", "context\ntokens", shows.count),
        Column("derated_time_s", "derated\ntime", shows.duration),
        Column("band", f"{decode.coverage_fraction * 100:g} % band\nlow to high"),
        Column("rows", "measured\nrows", shows.count),
    )
    rows = [
        [getattr(point, column.key) for column in columns[:4]]
        + [
            durations(point.band_low_s, point.band_high_s),
            (prefill if point.phase == "prefill" else decode).num_rows,
        ]
        for point in result.points
    ]
    note = (
        f"As servers were off: prefill as TTFT ({prefill.words}), decode as TPOT ({decode.words})."
    )
    return Table("How sure", columns, rows, note=note)


def _for_programs(result: RooflineResult) -> Table:
    """All of a point in one row."""
    beside = [Column(name, name) for name in ("band_low_s", "band_high_s")]
    columns = [*_points(result).columns, *beside]
    rows = [[getattr(point, column.key) for column in columns] for point in result.points]
    return Table("points", columns, rows)


def _reading(result: RooflineResult) -> str:
    peak = result.derated_peak_flops_per_s / result.peak_flops_per_s
    bandwidth = result.derated_bandwidth_bytes_per_s / result.bandwidth_bytes_per_s
    return (
        "Weights, KV and activations are counted as traffic. Shortest: data-sheet rates, perfect "
        f"overlap. Derated: {peak:.0%} of peak and {bandwidth:.0%} of bandwidth as measured, "
        "product by product, collectives included."
    )


def _plot(result: RooflineResult, width: int) -> str:
    """Roofs and points on log-log axes, without colour."""
    import plotext  # a tenth of a second, and only people look at it

    axes = roof_axes(result)
    plotext.terminal.limit(width=False, height=False)  # the width is ours to choose
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, PLOT_HEIGHT)
    # Logarithms are taken here: the library's own log scale wants its ticks in logarithms too.
    for axis, limits in (("x", axes.intensity), ("y", axes.tflops)):
        low, high = (math.log10(limit) for limit in limits)
        powers = list(range(math.ceil(low), math.floor(high) + 1))
        ruler = figure.ruler(axis)
        ruler.lim(low, high)
        ruler.ticks(powers, [f"{10.0**power:g}" for power in powers])
    # Later signals cover earlier ones.
    _draw(figure, axes.derated_roof, ".", joined=True)
    _draw(figure, axes.ideal_roof, "braille", joined=True)
    for phase, marker in (("decode", "o"), ("prefill", "P")):
        points = [
            (point.intensity_flop_per_byte, point.attainable_flop_per_s / TERA)
            for point in result.points
            if point.phase == phase
        ]
        _draw(figure, points, marker)
    figure.label("FLOP/byte   (o decode, P prefill; solid: data sheet, dotted: as measured)", "x")
    drawn = plotext.uncolorize(str(figure.build()))
    lines = [line.rstrip() for line in drawn.splitlines()]
    return "\n".join(["TFLOP/s a GPU", *(line for line in lines if line)])


def _draw(
    figure: Any, points: Sequence[tuple[float, float]], marker: str, *, joined: bool = False
) -> None:
    xs = [math.log10(x) for x, _ in points]
    ys = [math.log10(y) for _, y in points]
    figure.draw(figure.signal(xs, ys, marker=marker).lines(joined))


@dataclass(frozen=True, slots=True)
class RoofAxes:
    """Ranges and roofs of a roofline plot: FLOP/byte against TFLOP/s."""

    intensity: tuple[float, float]
    tflops: tuple[float, float]
    ideal_roof: tuple[tuple[float, float], ...]
    derated_roof: tuple[tuple[float, float], ...]


def roof_axes(result: RooflineResult) -> RoofAxes:
    """Axes that hold every point and both sides of the ridge."""
    intensities = [point.intensity_flop_per_byte for point in result.points]
    low = min(result.ridge_flop_per_byte / 100, min(intensities) / 1.5)
    high = max(4 * result.ridge_flop_per_byte, max(intensities) * 1.5)

    def roof(peak: float, bandwidth: float) -> tuple[tuple[float, float], ...]:
        ridge = peak / bandwidth
        return ((low, low * bandwidth / TERA), (ridge, peak / TERA), (high, peak / TERA))

    ideal = roof(result.peak_flops_per_s, result.bandwidth_bytes_per_s)
    derated = roof(result.derated_peak_flops_per_s, result.derated_bandwidth_bytes_per_s)
    return RoofAxes((low, high), (derated[0][1] / 1.2, ideal[-1][1] * 1.6), ideal, derated)
