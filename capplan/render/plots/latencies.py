"""How TTFT and ITL are distributed in a simulation: the tail, which limits are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capplan.render import shows
from capplan.render.plots.chart import Line, Mark, Panel, Plot, Point, Rule
from capplan.render.plots.ticks import logarithmic
from capplan.render.service_levels import percentile_name
from capplan.render.simulate import deployment
from capplan.results.simulate import Curves, Latency, ServiceLevel, SimulateInputs, SimulateResult

LEAST_SHARE = 1e-3
MEASURES = (("ttft", "TTFT", "requests"), ("itl", "ITL", "gaps"))


def latencies_plot(result: SimulateResult, curves: Curves, inputs: SimulateInputs) -> Plot | None:
    """None where nobody got a token."""
    distributions = dict(curves.distributions)
    panels = []
    for key, name, what in MEASURES:
        points = _tail(distributions.get(name, ()))
        levels = [level for level in result.service_levels if level.key == key]
        if len(points) > 1:
            panels.append(_panel(name, what, points, levels))
    if not panels:
        return None
    return Plot(
        name="latencies",
        finding=_finding(result, distributions),
        subject=f"{inputs.model_name} on {deployment(inputs)}, {inputs.traffic}",
        panels=panels,
        num_columns=len(panels),
        height_in=4.5,
    )


def _tail(curve: Sequence[tuple[float, float]]) -> list[Point]:
    """Milliseconds, and the share in % above them."""
    drawn = [(1e3 * value, 100 * (1 - share)) for value, share in curve if value > 0]
    tail = [(value, share) for value, share in drawn if share >= 100 * LEAST_SHARE]
    # Above the longest there is nothing: the curve falls to the floor of its panel.
    return [*tail, (drawn[len(tail)][0], 100 * LEAST_SHARE)] if len(tail) < len(drawn) else tail


def _panel(name: str, what: str, points: list[Point], levels: Sequence[ServiceLevel]) -> Panel:
    marks: list[Mark] = [Line(points, "blue", name="simulated")]
    ends = [x for x, _ in points] + [1e3 * level.limit_s for level in levels]
    for level in levels:
        marks.append(Rule("x", 1e3 * level.limit_s, "red", "dashed", "limit"))
        share = 100 - level.percentile
        at = f"share that may be above it ({percentile_name(level.percentile)})"
        marks.append(Rule("y", share, "red", "dotted", at))
    return Panel(
        x=logarithmic(f"{name} (ms)", min(ends) / 1.1, max(ends) * 1.2),
        y=logarithmic(f"{what} above (%)", 100 * LEAST_SHARE, 120),
        marks=marks,
    )


def _finding(
    result: SimulateResult, distributions: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    found = [
        _percentile(latency, result.service_levels)
        for key, _, _ in MEASURES
        for latency in result.latencies
        if latency.key == key
    ]
    if found:
        return "; ".join(found)
    # A queue that grows has no percentiles: they say how long the run was.
    medians = [
        f"half of {name} above {shows.duration(next(v for v, share in curve if share >= 0.5))}"
        for _, name, _ in MEASURES
        if (curve := distributions.get(name))
    ]
    return "Saturated, so this only says how long the run was: " + ", ".join(medians)


def _percentile(latency: Latency, levels: Sequence[ServiceLevel]) -> str:
    """`TTFT P99 is 101 ms, within 400 ms`."""
    level = next((level for level in levels if level.key == latency.key), None)
    wanted = 99.0 if level is None else level.percentile
    value_s = next((p.value_s for p in latency.percentiles if p.percentile == wanted), None)
    if level is not None and level.value_s is not None:
        value_s = level.value_s
    name = f"{latency.name} {percentile_name(wanted)}"
    if value_s is None:
        return f"{name} is not known: too few requests"
    text = f"{name} is {shows.duration(value_s)}"
    if level is None:
        return text
    held = value_s <= level.limit_s
    return f"{text}, {'within' if held else 'over the limit of'} {shows.duration(level.limit_s)}"
