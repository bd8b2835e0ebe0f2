"""MLPerf's server scenarios: the rate is a result, the latency limits are given.

A submitter raises the target rate until the 99th percentiles meet the limits; the run that is
published is the highest that passed. So the same search is made here: an error of a few percent in
what a system carries is then an error of a few percent in the rate, as it would be for the
submitter, and not one of a queue that grows for ten minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from capplan.accuracy.measured import MeasuredRun

_BISECTIONS = 6
# Of the capacity. Nearer to it the queue of ten minutes decides, which no submitter risks: at the
# published rates TTFT lies far below its limit.
_LEAST_FRACTION, _MOST_FRACTION = 0.2, 0.97


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


@dataclass(frozen=True)
class TunedSettings:
    """What a submitter of MLPerf sets where an ordinary server has the engine's defaults."""

    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool
    memory_share: float
    num_scheduler_steps: int = 1


# NVIDIA's configurations of Inference v5.0 (closed/*/configs/llama2-70b and llama3_1-405b): batches
# that do not bind, 1,024 to 3,584 tokens a step, MAX_UTILIZATION, chunked context.
_NVIDIA = TunedSettings(2048, 2048, True, 0.9)
# AMD's harness for v5.1 (its description of llm_config): vLLM V0 with multi-step scheduling.
_AMD = TunedSettings(1024, 26_624, False, 0.96, num_scheduler_steps=9)


def is_mlperf(run: MeasuredRun) -> bool:
    """Whether the row is a submission to MLPerf Inference."""
    return re.search(r"MLPerf v\d", run.columns.get("notes", "")) is not None


def tuned_settings(run: MeasuredRun, engine: str, vendor: str) -> TunedSettings | None:
    """Of a submission; None for other rows, and where nobody's configuration is known."""
    if not is_mlperf(run):
        return None
    return {("tensorrt-llm", "NVIDIA"): _NVIDIA, ("vllm", "AMD"): _AMD}.get((engine, vendor))


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
    notes = run.columns.get("notes", "")
    if run.workload != "poisson" or not is_mlperf(run):
        return None
    interactive = re.search(r"\bInteractive\b", notes) is not None
    for pattern, server, tight in _LIMITS:
        if re.search(pattern, run.model.lower()):
            return LatencyLimits(*(tight if interactive else server))
    return None


def bisect_rate(capacity_per_s: float, passes: Callable[[float], bool]) -> float:
    """The highest rate, as a share of the capacity, at which ``passes(rate)`` holds."""
    low, high = _LEAST_FRACTION, _MOST_FRACTION
    if passes(high * capacity_per_s):
        return high * capacity_per_s
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle * capacity_per_s) else (low, middle)
    return low * capacity_per_s
