"""A simulation over time: KV blocks in use, requests that run and that wait."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.plots.chart import Area, Line, Mark, Panel, Plot, Rule
from capplan.render.plots.ticks import linear
from capplan.render.simulate import deployment
from capplan.results.simulate import Curves, SimulateInputs, SimulateResult


def load_plot(result: SimulateResult, curves: Curves, inputs: SimulateInputs) -> Plot | None:
    """None where nothing ran."""
    if len(curves.series) < 2:
        return None
    end_s = curves.series[-1].time_s
    used = [(point.time_s, 100 * point.kv_used_fraction) for point in curves.series]
    running = [(point.time_s, point.num_running) for point in curves.series]
    waiting = [(point.time_s, point.num_waiting) for point in curves.series]
    most = max([y for _, y in running + waiting])
    return Plot(
        name="load",
        finding=_finding(result),
        subject=f"{inputs.model_name} on {deployment(inputs)}, {inputs.traffic}",
        panels=(
            Panel(
                x=linear("", 0, end_s),
                y=linear("KV in use (%)", 0, 105),
                marks=[*_phases(curves, 105), Line(used, "green", name="KV blocks")],
            ),
            Panel(
                x=linear("time (s)", 0, end_s),
                y=linear("requests", 0, max(1.0, 1.08 * most)),
                marks=[
                    *_phases(curves, max(1.0, 1.08 * most)),
                    Line(running, "blue", name="running"),
                    Line(waiting, "red", "dashed", name="waiting"),
                ],
            ),
        ),
        height_in=5.4,
    )


def _phases(curves: Curves, top: float) -> list[Mark]:
    """The warm-up that does not count, and when the last request came."""
    marks: list[Mark] = []
    if curves.warmup_s:
        marks.append(Area((0, curves.warmup_s), (0, 0), (top, top), "grey", "warm-up, not counted"))
    marks.append(Rule("x", curves.last_arrival_s, "grey", "dotted", "last arrival"))
    return marks


def _finding(result: SimulateResult) -> str:
    usage, saturation = result.usage, result.saturation
    filled = f"KV fills to {shows.share(usage.kv_used_fraction_max)}"
    if saturation.saturated:
        return (
            f"More comes ({shows.rate(saturation.offered_per_s)}) than is served "
            f"({shows.rate(saturation.served_per_s)}): {shows.count(usage.max_waiting)} wait at "
            f"the worst, {filled}"
        )
    return (
        f"{filled}; at most {shows.count(usage.max_running)} requests run and "
        f"{shows.count(usage.max_waiting)} wait at once"
    )
