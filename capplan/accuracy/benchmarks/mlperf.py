"""MLPerf's server scenarios: the rate is a result, the latency limits are given.

A submitter raises the target rate as far as the 99th percentiles keep the limits; the run that is
published is the highest that passed. So the same search is made here: an error of a few percent in
what a system carries is then an error of a few percent in the rate, as it would be for the
submitter, and not one of a batch several times too small or of a queue that grows for ten minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from capplan.accuracy.benchmarks.mlperf_settings import round_of
from capplan.accuracy.measured import MeasuredRun

_BISECTIONS = 7
_LEAST_FRACTION, _MOST_FRACTION = 0.2, 1.12  # of the capacity, which a burst underestimates


@dataclass(frozen=True)
class LatencyLimits:
    """99th percentiles, in ms."""

    ttft_p99_ms: float
    tpot_p99_ms: float

    def met_by(self, metrics: dict[str, float]) -> bool:
        """Whether a run would pass."""
        return (
            metrics["ttft_p99_ms"] <= self.ttft_p99_ms
            and metrics.get("tpot_p99_ms", 0.0) <= self.tpot_p99_ms
        )


# mlcommons/inference_policies inference_rules.adoc, v4.1 to v5.1: TTFT and TPOT of the Server and
# of the Interactive scenario.
_LIMITS: tuple[tuple[str, tuple[float, float], tuple[float, float]], ...] = (
    (r"llama-?2-70b", (2000, 200), (450, 40)),
    (r"llama-?3\.1-405b", (6000, 175), (4500, 80)),
    (r"llama-?3\.1-8b", (2000, 100), (500, 30)),
    (r"deepseek-r1", (2000, 80), (2000, 80)),
    (r"mixtral-8x7b", (2000, 200), (2000, 200)),
)


def limits_of(run: MeasuredRun) -> LatencyLimits | None:
    """The limits of a server scenario of MLPerf; None for every other row."""
    found = round_of(run)
    if run.workload != "poisson" or found is None:
        return None
    _, scenario = found
    for pattern, server, tight in _LIMITS:
        if re.search(pattern, run.model.lower()):
            return LatencyLimits(*(tight if scenario == "Interactive" else server))
    return None


def highest_rate(capacity_per_s: float, passes: Callable[[float], bool]) -> float:
    """The highest at which ``passes(rate)`` holds, by halving between shares of a capacity."""
    low, high = _LEAST_FRACTION, _MOST_FRACTION
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle * capacity_per_s) else (low, middle)
    return low * capacity_per_s
