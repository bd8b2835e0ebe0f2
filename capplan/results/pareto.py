"""`capplan pareto`: throughput against latency as one setting moves."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.bands import BandedFigure
from capplan.results.simulate import SimulateInputs


@dataclass(frozen=True, slots=True)
class ParetoInputs:
    """The question: what is swept, over which values, and all that stays as it is."""

    sweep: str  # max_num_seqs | max_num_batched_tokens | tp | replicas | qps
    values: tuple[float, ...]
    latency: str  # ttft | tpot | itl | e2e
    percentile: float
    limit_s: float | None  # of that latency, where it has one
    users_follow_seats: bool  # as many users in a closed loop as seats
    simulation: SimulateInputs  # of the first point


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One value of the setting, simulated. Percentiles are None where it is saturated."""

    value: float
    verdict: str
    meets: bool
    num_gpus: int
    requests_per_s: float
    output_tokens_per_s: float
    output_tokens_per_s_per_gpu: float
    goodput_per_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    itl_s: float | None
    e2e_s: float | None
    mean_batch: float | None
    kv_used_fraction: float | None
    num_preemptions: int
    on_frontier: bool
    bands: tuple[BandedFigure, ...] = ()  # of all GPUs' throughput and of the percentiles


@dataclass(frozen=True, slots=True)
class Knee:
    """The last value that pays: what going on to ``beyond`` adds, and what it costs."""

    value: float
    beyond: float
    throughput_gain_fraction: float
    latency_factor: float
    rule: str


@dataclass(frozen=True, slots=True)
class ParetoResult:
    points: tuple[ParetoPoint, ...]
    frontier: tuple[float, ...]
    knee: Knee | None
    best_within_limits: float | None  # most throughput among those that meet every limit
    interrupted: bool
