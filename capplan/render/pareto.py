"""The answer of `capplan pareto` as a screen, with a plot for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capplan.render import shows
from capplan.render.band_columns import end_keys
from capplan.render.band_shares import shares_note
from capplan.render.bands import GOODPUT, NAMES, SERVED, THROUGHPUT, bands_line
from capplan.render.pareto_words import finding, latency_name, value_name
from capplan.render.screen import Column, Screen, Table
from capplan.render.service_levels import percentile_name
from capplan.render.simulate import MODELLED, deployment, question
from capplan.results.assumptions import Assumption
from capplan.results.bands import BandedFigure
from capplan.results.pareto import ParetoInputs, ParetoPoint, ParetoResult

BANDED = (THROUGHPUT, SERVED, GOODPUT, "ttft", "tpot", "itl", "e2e")


def screen(result: ParetoResult, inputs: ParetoInputs, assumptions: Sequence[Assumption]) -> Screen:
    return Screen(
        headline=_headline(result, inputs),
        tables=[_points(result, inputs)],
        notes=_notes(result, inputs),
        plot=lambda width: _plot(result, inputs, width),
        assumptions=assumptions,
        next_commands=_next(result, inputs, assumptions),
        tsv=_for_programs(result),
    )


def _headline(result: ParetoResult, inputs: ParetoInputs) -> str:
    simulation = inputs.simulation
    who = simulation.traffic
    if inputs.users_follow_seats or inputs.sweep == "qps":
        lengths = (
            f"{round(simulation.mean_prompt_tokens):,} tokens in, "
            f"{round(simulation.mean_output_tokens):,} out"
        )
        who = f"as many users as seats, {lengths}" if inputs.users_follow_seats else lengths
    where = deployment(simulation)
    if inputs.sweep in ("tp", "replicas"):
        where = simulation.hardware
    return f"{simulation.model_name} on {where}, {who}:\n{finding(result, inputs)}"


def _points(result: ParetoResult, inputs: ParetoInputs) -> Table:
    def seconds(value: float | None) -> str:
        return "-" if value is None else shows.duration(value)

    at = percentile_name(inputs.percentile)
    columns = (
        Column(
            "value",
            inputs.sweep.replace("max_num_", "max_num_\n").replace("d_t", "d_\nt"),
            value_name,
        ),
        Column("output_tokens_per_s_per_gpu", "output tok/s\na GPU", shows.tokens),
        Column("requests_per_s", "served\nreq/s", shows.number),
        *(
            Column(f"{key}_s", f"{NAMES[key]}\n{at}", seconds)
            for key in ("ttft", "tpot", "itl", "e2e")
        ),
        Column("remark", "", right=False),
    )
    rows = [
        (
            point.value,
            point.output_tokens_per_s_per_gpu,
            point.requests_per_s,
            point.ttft_s,
            point.tpot_s,
            point.itl_s,
            point.e2e_s,
            _remark(point, result),
        )
        for point in result.points
    ]
    note = shares_note([(value_name(point.value), _shown(point)) for point in result.points])
    return Table("Throughput and latency", columns, rows, note=note, in_tsv=False)


def _shown(point: ParetoPoint) -> list[BandedFigure]:
    return [band for band in point.bands if band.figure not in (GOODPUT, "queue")]


def _remark(point: ParetoPoint, result: ParetoResult) -> str:
    if point.verdict == "saturated":
        return "saturated"
    marks = ["✓" if point.meets else "✗"]
    if result.knee is not None and point.value == result.knee.value:
        marks.append("knee")
    elif not point.on_frontier:
        marks.append("beaten")
    return " ".join(marks)


def _notes(result: ParetoResult, inputs: ParetoInputs) -> list[str]:
    notes = ["✓ and ✗: all limits met or not. Beaten: another value has more throughput and less "
             f"{latency_name(inputs)}."]  # fmt: skip
    if result.knee is not None:
        notes.append(f"Knee: {result.knee.rule}.")
    if result.best_within_limits is not None:
        best = value_name(result.best_within_limits)
        notes.append(f"Most throughput within the limits: {inputs.sweep} {best}.")
    else:
        notes.append("No value meets all limits.")
    notes += _sure(result, inputs)
    if result.interrupted:
        notes.append("Interrupted: the other values were not simulated.")
    return [*notes, MODELLED]


def _sure(result: ParetoResult, inputs: ParetoInputs) -> list[str]:
    """Bands of the point that the answer is about, else of the last that has any."""
    value = result.knee.value if result.knee else result.best_within_limits
    banded = [point for point in result.points if point.bands]
    if not banded:
        return []
    point = next((point for point in banded if point.value == value), banded[-1])
    shown = [band for band in point.bands if band.figure in (THROUGHPUT, "ttft", "tpot")]
    where = f"{inputs.sweep} {value_name(point.value)}"
    return [f"How sure, at {where}: {bands_line(shown)}"]


def _next(
    result: ParetoResult, inputs: ParetoInputs, assumptions: Sequence[Assumption]
) -> list[str]:
    value = result.knee.value if result.knee else result.best_within_limits
    if value is None:
        return []
    option = inputs.sweep.replace("_", "-")
    users = f" --users {value_name(value)}" if inputs.users_follow_seats else ""
    what = question(inputs.simulation, assumptions)
    return [f"capplan simulate {what}--{option} {value:g}{users}"]


def _plot(result: ParetoResult, inputs: ParetoInputs, width: int) -> str:
    from capplan.render.plots.in_terminal import texts_of
    from capplan.render.plots.pareto import pareto_plot

    return texts_of([pareto_plot(result, inputs)], width)


def _for_programs(result: ParetoResult) -> Table:
    """One row a value, with the ends of the bands behind each figure."""
    names = [name for name in ParetoPoint.__dataclass_fields__ if name != "bands"]
    rows = [_row(point, names) for point in result.points]
    columns = [Column(name, name) for name in (rows[0] if rows else names)]
    return Table("points", columns, [list(row.values()) for row in rows])


def _row(point: ParetoPoint, names: Sequence[str]) -> dict[str, Any]:
    by_figure = {band.figure: band for band in point.bands}
    row: dict[str, Any] = {}
    for name in names:
        row[name] = getattr(point, name)
        share = 1 / point.num_gpus if name.endswith("_per_gpu") else 1.0
        figure = name.removesuffix("_per_gpu")
        figure = figure if figure.endswith("_per_s") else figure.removesuffix("_s")
        if figure in BANDED:
            band = by_figure.get(figure)
            ends = (None, None) if band is None else (band.low * share, band.high * share)
            row.update(zip(end_keys(name), ends, strict=True))
    return row
