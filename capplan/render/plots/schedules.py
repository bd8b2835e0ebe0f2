"""A long prompt among answers under way, as a Gantt chart: the stall, and its cure."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.plots.chart import Bars, Ink, Mark, Panel, Plot, Rule
from capplan.render.plots.ticks import linear, rows
from capplan.results.schedulers import SchedulersInputs
from capplan.results.schedules import Schedule, SchedulesResult

TOKEN = "o"  # in the terminal, where a step ends
# What a span is: colour, letter in the terminal, hatch, height and name.
_KINDS: dict[str, tuple[Ink, str, str, float, str]] = {
    "decode": ("sky", "-", "", 0.5, "gets a token"),
    "prefill": ("orange", "█", "//", 0.7, "its prompt is computed"),
    "stalled": ("red", "x", "xx", 0.26, "stalled: no token"),
    "waiting": ("grey", ".", "", 0.12, "waits"),
}


def schedules_plot(result: SchedulesResult | None, inputs: SchedulersInputs) -> Plot | None:
    """None where no prompt was begun while others were answered."""
    if result is None:
        return None
    panels = [_panel(result, schedule) for schedule in result.schedules]
    return Plot(
        name="schedules",
        finding=_finding(result),
        subject=f"{inputs.model_name} on {inputs.hardware}, {inputs.traffic}; "
        f"{len(result.schedules[0].lanes) - 1} of {result.num_running:,} answers shown; "
        f"TTFT counts {shows.duration(result.server_s)} of the server around the engine",
        panels=panels,
        height_in=1.6 + 2.3 * len(panels),
    )


def _panel(result: SchedulesResult, schedule: Schedule) -> Panel:
    names = ["long prompt", *(f"answer {i}" for i in range(1, len(schedule.lanes)))]
    axis = rows(names)
    marks: list[Mark] = []
    for kind, (colour, letter, hatch, height, name) in _KINDS.items():
        bars = [
            (row, _ms(result, span.start_s), _ms(result, span.end_s))
            for (row, _), lane in zip(axis.ticks, schedule.lanes, strict=True)
            for span in lane.spans
            if span.kind == kind
        ]
        if bars:
            end = TOKEN if kind == "decode" else ""
            marks.append(Bars(bars, colour, letter, name, hatch, height, end_mark=end))
    marks.append(Rule("x", 0.0, "ink", "dotted", "long prompt arrives"))
    is_last = schedule is result.schedules[-1]
    return Panel(
        x=linear(
            "time since the long prompt's arrival (ms)" if is_last else "",
            _ms(result, result.start_s),
            _ms(result, result.end_s),
        ),
        y=axis,
        marks=marks,
        title=_title(schedule),
    )


def _ms(result: SchedulesResult, time_s: float) -> float:
    return 1e3 * (time_s - result.arrival_s)


def _title(schedule: Schedule) -> str:
    text = schedule.name[0].upper() + schedule.name[1:]
    if schedule.key == "chunked":
        text = f"Chunks of {schedule.max_num_batched_tokens:,} tokens a step"
    if schedule.longest_gap_s is not None:
        text += f": up to {shows.duration(schedule.longest_gap_s)} between tokens"
    return text


def _finding(result: SchedulesResult) -> str:
    whole, cut = result.schedules
    start = f"A prompt of {result.prompt_tokens:,} tokens"
    answers = shows.plural(result.num_running, "answer")
    if whole.longest_gap_s is None or cut.longest_gap_s is None:
        return f"{start} is computed while {answers} are under way"
    stalled, left = shows.duration(whole.longest_gap_s), shows.duration(cut.longest_gap_s)
    before, after = shows.duration(whole.ttft_s), shows.duration(cut.ttft_s)
    return (
        f"{start} stalls {answers} for {stalled}, in chunks for {left}; its own TTFT is then "
        f"{after} instead of {before}"
    )
