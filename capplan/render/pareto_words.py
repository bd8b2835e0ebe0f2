"""What a sweep shows, in words: for its screen and its plot."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.bands import NAMES
from capplan.render.service_levels import percentile_name
from capplan.results.pareto import ParetoInputs, ParetoResult


def value_name(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and value >= 10 else f"{value:g}"


def latency_name(inputs: ParetoInputs) -> str:
    """`TTFT P99`."""
    return f"{NAMES[inputs.latency]} {percentile_name(inputs.percentile)}"


def finding(result: ParetoResult, inputs: ParetoInputs) -> str:
    """What an operator needs: one sentence, that of the knee where there is one."""
    knee = result.knee
    if knee is not None:
        gain, factor = shows.share(knee.throughput_gain_fraction), shows.number(knee.latency_factor)
        return (
            f"beyond {inputs.sweep} {value_name(knee.value)}, {gain} more throughput "
            f"(at {value_name(knee.beyond)}) costs {factor} x {latency_name(inputs)}."
        )
    if not result.frontier:
        return f"no {inputs.sweep} gives a steady state."
    if len(result.frontier) == 1:
        best = value_name(result.frontier[0])
        return f"{inputs.sweep} {best} is best in throughput and {latency_name(inputs)}."
    return "throughput and latency rise together, without a knee."
