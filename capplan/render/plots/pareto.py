"""Throughput against latency: the frontier, where it bends, and the limit."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.pareto_words import finding, latency_name, value_name
from capplan.render.plots.chart import Dots, Line, Mark, Panel, Plot, Point, Rule
from capplan.render.plots.ticks import linear, logarithmic
from capplan.render.simulate import deployment
from capplan.results.pareto import ParetoInputs, ParetoPoint, ParetoResult

_Placed = tuple[Point, ParetoPoint]


def pareto_plot(result: ParetoResult, inputs: ParetoInputs) -> Plot | None:
    """None where fewer than two values gave a steady state: there is no curve."""
    placed = _placed(result, inputs)
    if len(placed) < 2:
        return None
    across = [x for (x, _), _ in placed]
    up = [y for (_, y), _ in placed]
    if inputs.limit_s is not None:
        up.append(1e3 * inputs.limit_s)
    simulation = inputs.simulation
    where = simulation.hardware if inputs.sweep in ("tp", "replicas") else deployment(simulation)
    num_saturated = sum(point.verdict == "saturated" for point in result.points)
    left_out = f"; saturated and not drawn: {num_saturated}" if num_saturated else ""
    text = finding(result, inputs).removesuffix(".")
    return Plot(
        name="pareto",
        finding=text[0].upper() + text[1:],
        subject=f"{simulation.model_name} on {where}{left_out}",
        panels=(
            Panel(
                x=linear("throughput (output tokens/s a GPU)", 0, 1.08 * max(across), shows.tokens),
                y=logarithmic(f"{latency_name(inputs)} (ms)", min(up) / 1.35, max(up) * 1.35),
                marks=_marks(result, inputs, placed),
            ),
        ),
    )


def _placed(result: ParetoResult, inputs: ParetoInputs) -> list[_Placed]:
    """Points with a latency to draw, from the least throughput on."""
    found = []
    for point in result.points:
        latency_s: float | None = getattr(point, f"{inputs.latency}_s")
        if latency_s:
            found.append(((point.output_tokens_per_s_per_gpu, 1e3 * latency_s), point))
    return sorted(found, key=lambda pair: pair[0])


def _marks(result: ParetoResult, inputs: ParetoInputs, placed: list[_Placed]) -> list[Mark]:
    knee = result.knee.value if result.knee else None
    on = [pair for pair in placed if pair[1].on_frontier]
    marks: list[Mark] = []
    if inputs.limit_s is not None:
        name = f"limit of {latency_name(inputs)}: {shows.duration(inputs.limit_s)}"
        marks.append(Rule("y", 1e3 * inputs.limit_s, "ink", "dotted", name))
    if len(on) > 1:
        marks.append(Line([place for place, _ in on], "blue", "solid"))
    for chosen, colour, shape, is_hollow, name in (
        ([p for p in placed if p[1].value == knee], "red", "diamond", False, "sweet spot (knee)"),
        ([p for p in on if p[1].value != knee], "blue", "circle", False, "frontier"),
        (
            [p for p in placed if p not in on and p[1].value != knee],
            "grey", "cross", False, "beaten by another in both",
        ),
    ):  # fmt: skip
        if chosen:
            labels = [_label(point, result, inputs) for _, point in chosen]
            dots = Dots([p for p, _ in chosen], colour, shape, name, is_hollow, labels)  # type: ignore[arg-type]
            marks.append(dots)
    return marks


def _label(point: ParetoPoint, result: ParetoResult, inputs: ParetoInputs) -> str:
    short = {"max_num_seqs": "", "max_num_batched_tokens": "", "tp": "TP ", "replicas": "x ",
             "qps": "QPS "}[inputs.sweep]  # fmt: skip
    text = short + value_name(point.value)
    is_best = point.value == result.best_within_limits and inputs.limit_s is not None
    return f"{text}: most within all limits" if is_best else text
