"""The answer of `capplan pareto` as a screen, with a plot for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capplan.render import shows
from capplan.render.bands import THROUGHPUT, bands_line
from capplan.render.screen import Column, Screen, Table
from capplan.render.service_levels import percentile_name
from capplan.render.simulate import MODELLED, deployment, question
from capplan.results.assumptions import Assumption
from capplan.results.pareto import Knee, ParetoInputs, ParetoPoint, ParetoResult

PLOT_HEIGHT = 18
MAX_PLOT_WIDTH = 100
NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}


def screen(result: ParetoResult, inputs: ParetoInputs, assumptions: Sequence[Assumption]) -> Screen:
    return Screen(
        headline=_headline(result, inputs),
        tables=[_points(result, inputs)],
        notes=_notes(result, inputs),
        plot=(lambda width: _plot(result, inputs, min(width, MAX_PLOT_WIDTH)))
        if len(_drawn(result, inputs)) > 1
        else None,
        assumptions=assumptions,
        next_commands=_next(result, inputs, assumptions),
        tsv=_for_programs(result),
    )


def value_name(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and value >= 10 else f"{value:g}"


def latency_name(inputs: ParetoInputs) -> str:
    """`TTFT P99`."""
    return f"{NAMES[inputs.latency]} {percentile_name(inputs.percentile)}"


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
    text = f"{simulation.model_name} on {where}, {who}:\n"
    if result.knee is not None:
        return text + sentence(result.knee, inputs)
    if not result.frontier:
        return text + f"no {inputs.sweep} gives a steady state."
    if len(result.frontier) == 1:
        best = value_name(result.frontier[0])
        return text + f"{inputs.sweep} {best} is best in throughput and {latency_name(inputs)}."
    return text + "throughput and latency rise together, without a knee."


def sentence(knee: Knee, inputs: ParetoInputs) -> str:
    """What an operator needs."""
    gain, factor = shows.share(knee.throughput_gain_fraction), shows.number(knee.latency_factor)
    return (
        f"beyond {inputs.sweep} {value_name(knee.value)}, {gain} more throughput "
        f"(at {value_name(knee.beyond)}) costs {factor} x {latency_name(inputs)}."
    )


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
    return Table("Throughput and latency", columns, rows, in_tsv=False)


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


def _drawn(result: ParetoResult, inputs: ParetoInputs) -> list[tuple[ParetoPoint, float]]:
    """Points with a latency to draw."""
    found = []
    for point in result.points:
        latency: float | None = getattr(point, f"{inputs.latency}_s")
        if latency is not None and latency > 0:
            found.append((point, latency))
    return found


def _plot(result: ParetoResult, inputs: ParetoInputs, width: int) -> str:
    """Latency (logarithmic) over throughput; the knee is a K."""
    import plotext  # a tenth of a second, and only people look at it

    points = _drawn(result, inputs)
    plotext.terminal.limit(width=False, height=False)  # the width is ours to choose
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, PLOT_HEIGHT)
    across = [point.output_tokens_per_s_per_gpu for point, _ in points]
    up = [math.log10(latency) for _, latency in points]
    margin = 0.06 * (max(up) - min(up) or 1.0)
    ruler = figure.ruler("y")
    low, high = min(up) - margin, max(up) + margin
    ruler.lim(low, high)
    ticks = [low + (high - low) * i / 4 for i in range(5)]
    ruler.ticks(ticks, [shows.duration(10**tick) for tick in ticks])
    most = 1.05 * max(across)
    figure.ruler("x").lim(0, most)
    places = [most * i / 5 for i in range(6)]
    figure.ruler("x").ticks(places, [shows.tokens(float(f"{place:.2g}")) for place in places])
    on = [(x, y) for (p, _), x, y in zip(points, across, up, strict=True) if p.on_frontier]
    on.sort()
    if len(on) > 1:
        figure.draw(figure.signal([x for x, _ in on], [y for _, y in on], marker=".").lines(True))
    for (point, _), x, y in zip(points, across, up, strict=True):
        is_knee = result.knee is not None and point.value == result.knee.value
        mark = "K" if is_knee else "o" if point.on_frontier else "x"
        figure.draw(figure.signal([x], [y], marker=mark).lines(False))
    figure.label("output tokens/s a GPU   (o frontier, K knee, x beaten)", "x")
    drawn = plotext.uncolorize(str(figure.build()))
    lines = [line.rstrip() for line in drawn.splitlines()]
    return "\n".join([latency_name(inputs), *(line for line in lines if line)])


def _for_programs(result: ParetoResult) -> Table:
    names = list(ParetoPoint.__dataclass_fields__)
    rows = [[getattr(point, name) for name in names] for point in result.points]
    return Table("points", [Column(name, name) for name in names], rows)
