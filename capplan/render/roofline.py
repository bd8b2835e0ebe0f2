"""The answer of `capplan roofline` as a screen, with a plot for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from capplan.render import shows
from capplan.render.bands import durations
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.roofline import GpuRoofline, RooflineInputs, RooflinePoint, RooflineResult
from capplan.units import TERA

_KEY = attrgetter("phase", "num_sequences", "context_tokens")
_KERNEL_KEYS = (
    "phase", "num_sequences", "context_tokens", "kernel", "intensity_flop_per_byte", "bound",
    "attainable_flop_per_s", "time_s", "derated_time_s", "step_fraction",
)  # fmt: skip


def screen(
    result: RooflineResult, inputs: RooflineInputs, assumptions: Sequence[Assumption]
) -> Screen:
    return Screen(
        headline=_headline(result),
        tables=[
            table
            for each in result.each
            for table in (
                _points(each, result),
                *(_kernels(each, result) if each.kernels else []),
                _bands(each, result),
            )
        ],
        notes=[_reading(each, result) for each in result.each],
        plot=lambda width: _plot(result, width),
        assumptions=assumptions,
        next_commands=[
            f"capplan gpus --qps 100 --model {inputs.model} --hardware {inputs.hardware}"
        ],
        tsv=_for_programs(result),
    )


def _headline(result: RooflineResult) -> str:
    lines = []
    for each in result.each:
        gpus = f"{each.tp} x {each.hardware}" if each.tp > 1 else each.hardware
        lines.append(
            f"{each.model} in {each.dtype} on {gpus}: the roof bends at "
            f"{shows.number(each.ridge_flop_per_byte)} FLOP/byte\n"
            f"({shows.flops(each.peak_flops_per_s)} dense {each.compute_format}, "
            f"{shows.bandwidth(each.bandwidth_bytes_per_s)}; a GPU)."
        )
    return "\n".join(lines)


def _on(each: GpuRoofline, result: RooflineResult) -> str:
    """Which accelerator, where there are several."""
    return f" on {each.hardware}" if result.beside else ""


def _points(each: GpuRoofline, result: RooflineResult) -> Table:
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
    rows = [[getattr(point, column.key) for column in columns] for point in each.points]
    return Table(f"Prefill of one prompt; one decode step{_on(each, result)}", columns, rows)


def _kernels(each: GpuRoofline, result: RooflineResult) -> list[Table]:
    """A table a point; its title has the time of the whole, and the band of that."""
    columns = (
        Column("kernel", "kernel", right=False),
        Column("intensity_flop_per_byte", "FLOP per\nbyte", shows.number),
        Column("bound", "bound", right=False),
        Column("attainable_flop_per_s", "reach\nTFLOP/s", lambda v: shows.number(v / TERA)),
        Column("time_s", "shortest\ntime", shows.duration),
        Column("derated_time_s", "derated\ntime", shows.duration),
        Column("step_fraction", "of the\nwhole", shows.share),
    )
    tables = []
    for point in each.points:
        rows = [
            [getattr(kernel, column.key) for column in columns]
            for kernel in each.kernels
            if _KEY(kernel) == _KEY(point)
        ]
        tables.append(
            Table(
                f"{_what(point)} by kernel{_on(each, result)}: {_whole(each, point)}", columns, rows
            )
        )
    note = (
        "All layers together. Norms, collectives and the host have no roof here. Kernels have no "
        "band of their own: serving runs do not time them one by one."
    )
    return [*tables[:-1], replace(tables[-1], note=note)]


def _what(point: RooflinePoint) -> str:
    if point.phase == "prefill":
        return f"Prefill of {shows.count(point.context_tokens)} tokens"
    return f"Decode of {point.num_sequences:,} at {shows.count(point.context_tokens)} tokens"


def _whole(each: GpuRoofline, point: RooflinePoint) -> str:
    """`30.3 ms, 80 % band 23 to 57 ms`."""
    band = durations(point.band_low_s, point.band_high_s)
    return f"{shows.duration(point.derated_time_s)}, {_coverage(each)} % band {band}"


def _coverage(each: GpuRoofline) -> str:
    return f"{each.bands[0].coverage_fraction * 100:g}"


def _bands(each: GpuRoofline, result: RooflineResult) -> Table:
    """The time of each point with its band, and how well it uses the GPU: no room is left
    beside the rest."""
    prefill, decode = each.bands
    columns = (
        Column("phase", "phase", right=False),
        Column("num_sequences", "batch", shows.count),
        Column("context_tokens", "context\ntokens", shows.count),
        Column("derated_time_s", "derated\ntime", shows.duration),
        Column("band", f"{_coverage(each)} % band\nlow to high"),
        Column("rows", "measured\nrows", shows.count),
        Column("mfu", "MFU", shows.share),
        Column("mbu", "MBU", shows.share),
    )
    rows = [
        [
            *(getattr(point, column.key) for column in columns[:4]),
            durations(point.band_low_s, point.band_high_s),
            (prefill if point.phase == "prefill" else decode).num_rows,
            point.mfu,
            point.mbu,
        ]
        for point in each.points
    ]
    note = (
        f"As servers were off: prefill as TTFT ({prefill.words}), decode as TPOT ({decode.words}). "
        "MFU: FLOP of the model over derated time and peak; MBU: weights and KV over derated time "
        "and bandwidth."
    )
    return Table(f"How sure, how well used{_on(each, result)}", columns, rows, note=note)


def _for_programs(result: RooflineResult) -> Table:
    """All of a point in one row; of a kernel, where they were asked for."""
    if result.kernels:
        columns = [Column(key, key) for key in (*_KERNEL_KEYS, "hardware")]
        rows = [
            [*(getattr(kernel, key) for key in _KERNEL_KEYS), each.hardware]
            for each in result.each
            for kernel in each.kernels
        ]
        return Table("kernels", columns, rows)
    keys = [column.key for column in _points(result, result).columns]
    keys += ["band_low_s", "band_high_s", "mfu", "mbu"]
    columns = [Column(key, key) for key in [*keys, "hardware"]]
    rows = [
        [*(getattr(point, key) for key in keys), each.hardware]
        for each in result.each
        for point in each.points
    ]
    return Table("points", columns, rows)


def _reading(each: GpuRoofline, result: RooflineResult) -> str:
    peak = each.derated_peak_flops_per_s / each.peak_flops_per_s
    bandwidth = each.derated_bandwidth_bytes_per_s / each.bandwidth_bytes_per_s
    measured = f"{peak:.0%} of peak and {bandwidth:.0%} of bandwidth as measured"
    if each is not result:
        return f"{each.hardware}, derated: {measured}."
    return (
        "Weights, KV and activations are counted as traffic. Shortest: data-sheet rates, perfect "
        f"overlap. Derated{_on(each, result)}: {measured}, "
        "product by product, collectives included."
    )


def _plot(result: RooflineResult, width: int) -> str:
    from capplan.render.plots.in_terminal import text_of
    from capplan.render.plots.roofline import roofline_plot

    return text_of(roofline_plot(result.each), width)
