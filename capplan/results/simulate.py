"""`capplan simulate`: the question as it was understood, and what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from capplan.results.bands import BandedFigure


@dataclass(frozen=True, slots=True)
class SimulateInputs:
    """The question in base units, defaults filled in."""

    model: str
    model_name: str
    hardware: str
    plan: str | None  # the file, where one was given
    engine: str
    num_replicas: int
    tp: int
    pp: int
    dp: int  # copies of the attention: seats, budget and blocks below are those of all
    ep: int
    traffic: str
    arrival_rate_per_s: float | None
    mean_prompt_tokens: float
    mean_output_tokens: float
    num_requests: int | None
    duration_s: float | None
    warmup_s: float | None
    seed: int
    num_replications: int
    dtype: str
    kv_dtype: str
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    block_size: int
    num_gpu_blocks: int
    enable_prefix_caching: bool
    enable_chunked_prefill: bool
    async_scheduling: bool
    slo_percentile: float | None  # None: each limit has its own
    calibration: str | None = None  # a file


@dataclass(frozen=True, slots=True)
class Percentile:
    """``value_s`` is None where fewer than ten samples lie beyond; ``num_needed`` would do."""

    percentile: float
    value_s: float | None
    low_s: float | None  # 95 % interval
    high_s: float | None
    num_needed: int | None


@dataclass(frozen=True, slots=True)
class Latency:
    """One measure over the requests that count, or over all gaps between their tokens."""

    key: str  # ttft | tpot | itl | e2e | queue
    name: str
    num_samples: int
    mean_s: float | None
    max_s: float | None
    percentiles: tuple[Percentile, ...]


@dataclass(frozen=True, slots=True)
class ClassLatencies:
    """TTFT, TPOT and E2E of one class of the traffic."""

    name: str
    num_measured: int
    latencies: tuple[Latency, ...]


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A limit at its percentile. ``met`` is None where too few requests were seen to tell.

    A request without an answer is above every limit.
    """

    key: str
    name: str
    percentile: float
    limit_s: float
    value_s: float | None
    over_fraction: float | None  # of the samples, above the limit
    met: bool | None
    why: str | None  # where there is no value


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that meet every limit of a request (TTFT, TPOT, E2E)."""

    goodput_per_s: float
    met_fraction: float
    target_fraction: float | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class Saturation:
    """Whether more comes in than goes out, over the second half of the arrivals.

    ``num_waiting_*``: requests in the engine (waiting or running) at the half and at the end.
    """

    saturated: bool
    offered_per_s: float
    served_per_s: float
    num_present_half: int
    num_present_end: int
    rule: str
    too_short: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What the engine did within the window, over all replicas."""

    num_steps: float
    mean_step_s: float | None
    mean_batch: float | None  # decodes a step
    mean_step_tokens: float | None
    budget_fraction: float | None  # of max_num_batched_tokens
    max_running: int
    max_waiting: int
    kv_used_fraction: float | None  # mean over time
    kv_used_fraction_max: float
    busy_fraction: float
    num_preemptions: int
    wasted_tokens: int  # computed again after a preemption, or for nobody
    wasted_fraction: float
    prefix_hit_fraction: float | None  # of the prompt tokens


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    """What one replica did over the whole run, all its lives together."""

    index: int
    num_sent: int  # attempts that the router sent there
    num_answered: int
    num_failures: int
    busy_fraction: float
    max_running: int
    prefix_hit_fraction: float | None  # of the prompt tokens that were answered
    num_preemptions: int
    scheduled_tokens: int


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Requests without an answer: timed out, rejected, failed, refused, unfinished; and why."""

    end: str
    count: int
    why: str | None


@dataclass(frozen=True, slots=True)
class SimulateResult:
    """``verdict``: meets | misses | saturated | undecided | interrupted | no-requests."""

    verdict: str
    feasible: bool
    num_gpus: int
    num_requests: int  # that arrived, over all replications
    num_answered: int
    num_measured: int  # that count for percentiles: arrived after the warm-up
    num_attempts: int
    unanswered: tuple[Unanswered, ...]
    end: str  # finished | stalled | livelock | interrupted
    warmup_s: float
    warmup_rule: str
    window_s: float
    interval: str | None  # how the 95 % intervals were made
    service_levels: tuple[ServiceLevel, ...]
    goodput: Goodput | None
    latencies: tuple[Latency, ...]
    classes: tuple[ClassLatencies, ...]  # where the traffic has several
    output_tokens_per_s: float
    prompt_tokens_per_s: float
    requests_per_s: float
    saturation: Saturation
    drain_s: float  # from the last arrival until all had left
    usage: Usage
    replicas: tuple[ReplicaLoad, ...]
    bottleneck: str | None  # seats | kv | None
    bands: tuple[BandedFigure, ...] = ()  # of latencies and throughput


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """Means over an interval that ends at ``time_s``, over all replicas."""

    time_s: float
    num_running: float
    num_waiting: float
    kv_used_fraction: float


@dataclass(frozen=True, slots=True)
class Curves:
    """For plots; not part of the JSON. Distributions as (value, share at or below it)."""

    series: tuple[SeriesPoint, ...]
    distributions: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    last_arrival_s: float
    warmup_s: float


class RequestRow(NamedTuple):
    """One request for `--records`; times on the simulation's clock, None where none came."""

    replication: int
    id: str
    replica: int | None
    end: str  # ok, timed out, rejected, failed, refused, unfinished
    arrival_s: float
    first_scheduled_s: float | None
    first_token_s: float | None
    finish_s: float | None
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None
    num_preemptions: int | None
    queue_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    measured: bool  # counts for the percentiles


class StepSlice(NamedTuple):
    """One step, or a stretch of steps of decodes only."""

    start_s: float
    duration_s: float
    num_steps: int
    num_decodes: int
    prefill_tokens: int


class LoadSample(NamedTuple):
    time_s: float
    num_running: int
    num_waiting: int
    num_used_blocks: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The first part of a run, up to ``until_s``: by replica, and request by request."""

    steps: tuple[tuple[StepSlice, ...], ...]
    loads: tuple[tuple[LoadSample, ...], ...]
    requests: tuple[RequestRow, ...]
    until_s: float
    is_whole: bool
