"""`capplan gpus`: the question as it was understood, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from capplan.results.bands import BandedFigure, Range

if TYPE_CHECKING:  # bounds do not simulate
    from capplan.results.sizing import Sizing, Sustained


@dataclass(frozen=True, slots=True)
class GpusInputs:
    """The question of `capplan gpus` as it was understood, in base units."""

    model: str
    model_name: str
    hardware: tuple[str, ...]
    arrival_rate_per_s: float
    prompt_tokens: int
    output_tokens: int
    slo_ttft_s: float | None
    slo_tpot_s: float | None
    slo_statistic: str  # mean | P99 | percentiles
    slo_e2e_s: float | None
    slo_itl_s: float | None
    slo_percentiles: dict[str, float]  # by measure; empty where only bounds were asked for
    verify: bool
    objective: str
    arrivals: str
    plan: str | None
    trace: str | None
    prompt_lengths: str  # as given; prompt_tokens and output_tokens are their means
    output_lengths: str
    dtype: str
    kv_dtype: str
    tp: int | None
    gpu_memory_bytes: int | None
    gpu_memory_utilization: float
    reserve_bytes: int
    block_size: int
    max_num_batched_tokens: int
    async_scheduling: bool
    enable_prefix_caching: bool
    num_spare_replicas: int
    gpus_per_node: int | None
    usd_per_gpu_hour: float | None
    price_tier: str
    price_factor: float
    idle_power_fraction: float
    replica_output_tokens_per_s: float | None
    calibration: str | None = None  # a file


@dataclass(frozen=True, slots=True)
class Bounds:
    """GPUs that each limit alone asks for, and all of them together.

    Bands say how many it would be if replicas were as quick as throughput's band ends; memory
    does not depend on that.
    """

    num_gpus_memory: int
    num_gpus_decode: int
    num_gpus_prefill: int
    num_gpus_combined: int
    num_gpus_decode_band: Range | None = None
    num_gpus_prefill_band: Range | None = None
    num_gpus_combined_band: Range | None = None


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A limit and what is predicted at the recommended size.

    By bounds a mean without queues (``percentile`` None); by simulation a percentile with its
    95 % interval, or None where the fleet is saturated.
    """

    name: str  # "TTFT" | "TPOT" | "E2E"
    limit_s: float
    predicted_s: float | None
    percentile: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    kind: str | None = None  # the class of the traffic that it is a promise to

    @property
    def met(self) -> bool:
        return self.predicted_s is not None and self.predicted_s <= self.limit_s


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change that makes an infeasible question feasible, or the nearest miss."""

    option: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class TpOption:
    """One tensor-parallel degree that was looked at."""

    tp: int
    num_gpus: int | None
    verdict: str
    num_gpus_band: Range | None = None


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One replica: tp GPUs holding the model."""

    weight_bytes_per_gpu: int
    kv_pool_bytes_per_gpu: float
    kv_bytes_per_sequence_per_gpu: float
    max_sequences: int
    decode_batch: float  # mean decodes a step at the combined bound
    step_time_s: float  # mean step at the combined bound
    max_decode_batch: int  # largest pure decode batch within the TPOT limit and the pool
    output_tokens_per_s: float  # pure decode at that batch
    prefill_tokens_per_s: float
    requests_per_s: float  # at the combined bound


@dataclass(frozen=True, slots=True)
class Cost:
    """The bill for all GPUs that are paid for: spares and whole nodes included.

    The bill is dealt out by what the GPUs do: prefill and decode in proportion to their time, so
    that prompt tokens and output tokens at these prices add up to it.
    """

    usd_per_gpu_hour_listed: float
    price_factor: float  # discount of a commitment or spot, 1 at the list price
    usd_per_gpu_hour: float
    tier: str  # on-demand | reserved | spot | marketplace | estimate | given
    as_of: str | None  # YYYY-MM-DD; None where the user gave the price
    source: str
    num_gpus: int
    usd_per_hour: float
    usd_per_month: float
    hours_per_month: float
    prefill_time_fraction: float
    usd_per_million_tokens: float  # prompt and output alike
    usd_per_million_prompt_tokens: float
    usd_per_million_generated_tokens: float


@dataclass(frozen=True, slots=True)
class Power:
    """Of the GPUs alone: no hosts, network or cooling."""

    tdp_w_per_gpu: float
    num_gpus: int
    peak_power_w: float  # TDP of all GPUs
    idle_fraction: float  # of TDP, by a GPU without work
    busy_fraction: float  # over spares and the rest of the nodes
    average_power_w: float
    kwh_per_million_tokens: float  # prompt and output alike
    kwh_per_million_output_tokens: float  # all energy over output tokens alone


@dataclass(frozen=True, slots=True)
class ServedAs:
    """The engine and its settings, by its own names, as they were simulated."""

    engine: str
    pp: int
    dp: int  # copies of the attention that share the experts; settings are those of one
    ep: int
    dtype: str
    kv_dtype: str
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    enable_prefix_caching: bool
    one_pool: bool  # KV of several kinds, or older rules, were simplified for the search


@dataclass(frozen=True, slots=True)
class GpusPlan:
    """The answer for one accelerator. Counts are None where the question is infeasible."""

    hardware: str
    feasible: bool
    binding: (
        str  # which bound decides: memory | decode | prefill | combined; simulation; or what fails
    )
    binding_limit: str  # which limit of that bound: tpot | ttft | kv_memory | ...
    why: str | None  # in words, where the accelerator cannot do what was asked
    tp: int | None
    num_replicas: int | None
    num_gpus: int | None
    num_spare_replicas: int
    num_nodes: int | None
    gpus_per_node: int
    num_gpus_rounded: int | None
    bounds: Bounds | None
    concurrency: float
    kv_bytes_per_token: float
    kv_demand_bytes: float
    output_tokens_per_s: float
    replica: ReplicaFacts | None
    service_levels: tuple[ServiceLevel, ...]
    busy_fraction: float | None  # of the bound, at num_replicas without spares
    busy_fraction_with_spares: float | None
    usd_per_gpu_hour: float | None
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    price_source: str | None
    cost: Cost | None
    power: Power | None
    tp_options: tuple[TpOption, ...]
    suggestions: tuple[Suggestion, ...]
    sustained: Sustained | None  # by one replica, where it was simulated
    served_as: ServedAs | None
    bands: tuple[BandedFigure, ...]  # of the number of GPUs and of the service levels


@dataclass(frozen=True, slots=True)
class GpusResult(GpusPlan):
    """The cheapest feasible plan among the accelerators asked for, and beside it all of them."""

    candidates: tuple[GpusPlan, ...]
    sizing: Sizing | None  # None: bounds only

    @classmethod
    def first_of(cls, plans: Sequence[GpusPlan], sizing: Sizing | None = None) -> GpusResult:
        """Plans in order of preference."""
        chosen = {field.name: getattr(plans[0], field.name) for field in fields(plans[0])}
        return cls(**chosen, candidates=tuple(plans), sizing=sizing)
