"""The answer of `capplan roofline` as a screen, with a plot for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.bands import durations
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.roofline import GpuRoofline, RooflineInputs, RooflineResult
from capplan.units import TERA


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
                *([_kernels(each, result)] if each.kernels else []),
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


def _kernels(each: GpuRoofline, result: RooflineResult) -> Table:
    columns = (
        Column("phase", "phase", right=False),
        Column("num_sequences", "batch", shows.count),
        Column("context_tokens", "context\ntokens", shows.count),
        Column("kernel", "kernel", right=False),
        Column("intensity_flop_per_byte", "FLOP per\nbyte", shows.number),
        Column("bound", "bound", right=False),
        Column("attainable_flop_per_s", "reach\nTFLOP/s", lambda v: shows.number(v / TERA)),
        Column("time_s", "shortest\ntime", shows.duration),
        Column("derated_time_s", "derated\ntime", shows.duration),
        Column("step_fraction", "of the\nstep", shows.share),
    )
    rows = [[getattr(kernel, column.key) for column in columns] for kernel in each.kernels]
    return Table(
        f"Kernel by kernel, all layers together{_on(each, result)}",
        columns,
        rows,
        note="Shares are of the derated time; norms, collectives and the host have no roof here.",
    )


def _bands(each: GpuRoofline, result: RooflineResult) -> Table:
    """The time of each point with its band: no room is left beside the rest."""
    prefill, decode = each.bands
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
        for point in each.points
    ]
    note = (
        f"As servers were off: prefill as TTFT ({prefill.words}), decode as TPOT ({decode.words})."
    )
    return Table(f"How sure{_on(each, result)}", columns, rows, note=note)


def _for_programs(result: RooflineResult) -> Table:
    """All of a point in one row; of a kernel, where they were asked for."""
    if result.kernels:
        table = _kernels(result, result)
        columns = [Column(column.key, column.key) for column in table.columns]
        rows = [
            [*(getattr(kernel, column.key) for column in columns), each.hardware]
            for each in result.each
            for kernel in each.kernels
        ]
        return Table("kernels", [*columns, Column("hardware", "hardware")], rows)
    keys = [column.key for column in _points(result, result).columns]
    keys += ["band_low_s", "band_high_s"]
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
