"""Answers, as frozen dataclasses: every table, text, JSON and plot is a rendering of one of these.

Base units, the unit in the name. These names are the keys of ``--json``; a renamed field or a
changed unit raises the schema version of its command.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that the user did not say: what was taken, and which option changes it."""

    what: str
    value: str
    option: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """GPUs that each limit alone asks for, and all of them together."""

    num_gpus_memory: int
    num_gpus_decode: int
    num_gpus_prefill: int
    num_gpus_combined: int


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A limit and what the bound predicts at the recommended size: no queueing, means."""

    name: str  # "TTFT" | "TPOT"
    limit_s: float
    predicted_s: float

    @property
    def met(self) -> bool:
        return self.predicted_s <= self.limit_s


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change that makes an infeasible question feasible, or the nearest miss."""

    option: str
    value: str
    why: str


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
class GpusPlan:
    """The answer for one accelerator. Counts are None where the question is infeasible."""

    hardware: str
    feasible: bool
    binding: str  # which bound decides: memory | decode | prefill | combined; or what fails
    binding_limit: str  # which limit of that bound: tpot | ttft | kv_memory | ...
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
    tp_options: tuple[TpOption, ...]
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, slots=True)
class TpOption:
    """One tensor-parallel degree that was looked at."""

    tp: int
    num_gpus: int | None
    verdict: str


@dataclass(frozen=True, slots=True)
class GpusResult:
    """The cheapest feasible plan among the accelerators asked for, and all of them."""

    plan: GpusPlan
    candidates: tuple[GpusPlan, ...]


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One phase at one batch and context; ``time_s`` is the shortest possible."""

    phase: str  # prefill | decode
    num_sequences: int
    context_tokens: int
    new_tokens: int
    flop: float
    hbm_bytes: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    intensity_flop_per_byte: float
    bound: str  # memory | compute
    attainable_flop_per_s: float
    peak_fraction: float
    time_s: float
    derated_time_s: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class RooflineResult:
    hardware: str
    model: str
    dtype: str
    compute_format: str
    tp: int
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    ridge_flop_per_byte: float
    derated_peak_flops_per_s: float
    derated_bandwidth_bytes_per_s: float
    points: tuple[RooflinePoint, ...]


@dataclass(frozen=True, slots=True)
class KvLayerKind:
    name: str
    kind: str
    num_layers: int
    bytes_per_token: float  # all its layers, one GPU
    window: int | None
    state_bytes_per_sequence: float


@dataclass(frozen=True, slots=True)
class KvFit:
    """What fits on one replica for one choice of formats and TP."""

    dtype: str
    kv_dtype: str
    tp: int
    weight_bytes_per_gpu: int
    kv_pool_bytes_per_gpu: float
    fits: bool
    longest_context_tokens: int
    pool_tokens: int  # in sequences of the asked context
    num_sequences: int


@dataclass(frozen=True, slots=True)
class BlockSizeRow:
    block_size: int
    mean_waste_tokens: float
    waste_fraction: float
    block_table_bytes: int  # of one sequence of the asked context
    contiguous_bytes: float  # one block of one layer on one GPU
    used_tokens: int
    paged_slots: int
    paged_utilisation: float


@dataclass(frozen=True, slots=True)
class KvResult:
    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int
    num_params_total: int
    num_params_active: int
    num_params_embedding: int
    weight_bytes: int
    weight_bytes_per_gpu: int
    kv_bytes_per_token: float
    kv_bytes_per_token_per_gpu: float
    context_tokens: int
    kv_bytes_per_sequence: float
    kv_bytes_per_sequence_per_gpu: float
    visible_memory_bytes: int
    budget_bytes_per_gpu: float
    reserve_bytes_per_gpu: int
    kv_pool_bytes_per_gpu: float
    num_sequences: int
    pool_tokens: int
    block_size: int
    layers: tuple[KvLayerKind, ...]
    fits: tuple[KvFit, ...]
    num_lengths: int
    lengths_total_tokens: int
    static_length: int
    static_slots: int
    static_utilisation: float
    blocks: tuple[BlockSizeRow, ...]


@dataclass(frozen=True, slots=True)
class GpusInputs:
    """The question of `capplan gpus` as it was understood, in base units."""

    model: str
    model_name: str
    hardware: tuple[str, ...]
    arrival_rate_per_s: float
    prompt_tokens: int
    output_tokens: int
    slo_ttft_s: float
    slo_tpot_s: float
    slo_statistic: str
    dtype: str
    kv_dtype: str
    tp: int | None
    gpu_memory_utilization: float
    reserve_bytes: int
    block_size: int
    max_num_batched_tokens: int
    num_spare_replicas: int
    gpus_per_node: int | None
    usd_per_gpu_hour: float | None
    replica_output_tokens_per_s: float | None


@dataclass(frozen=True, slots=True)
class RooflineInputs:
    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int
    batches: tuple[int, ...]
    context_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KvInputs:
    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int | None
    context_tokens: int
    gpu_memory_utilization: float
    reserve_bytes: int
    block_size: int
    lengths: str
    static_length: int | None


@dataclass(frozen=True, slots=True)
class PriceFacts:
    provider: str
    instance: str | None
    region: str | None
    tier: str
    usd_per_gpu_hour: float
    as_of: str


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """One accelerator of the catalogue; peaks are dense, the ridge is at 16 bits."""

    id: str
    name: str
    vendor: str
    architecture: str
    year: int
    aliases: tuple[str, ...]
    peak_flops_per_s: dict[str, float]
    marketed_memory_bytes: int
    driver_memory_bytes: int | None
    visible_memory_bytes: int
    visible_memory_is_estimate: bool
    memory_type: str
    bandwidth_bytes_per_s: float
    l2_bytes: int | None
    ridge_flop_per_byte: float | None
    scale_up: str | None
    scale_up_bytes_per_s: float | None
    scale_up_domain_gpus: int | None
    pcie_bytes_per_s: float | None
    tdp_w: float | None
    gpus_per_node: int
    network_bytes_per_s: float | None
    instances: tuple[str, ...]
    usd_per_gpu_hour: float | None
    prices: tuple[PriceFacts, ...]
    gemm_fraction: dict[str, float]
    bandwidth_fraction: float | None
    notes: tuple[str, ...]
    sources: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LayerFacts:
    num_layers: int
    mixer: str | None
    ffn: str | None


@dataclass(frozen=True, slots=True)
class TensorGroupFacts:
    group: str
    num_params: int
    num_params_active: int
    weight_bytes: int
    weight_format: str


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model of the catalogue."""

    id: str
    name: str
    aliases: tuple[str, ...]
    sources: tuple[str, ...]
    num_params_total: int
    num_params_active: int
    num_params_mtp: int  # beside the total: loaded by speculative decoding only
    weight_format: str
    weight_bytes: int
    kv_bytes_per_token: float
    kv_dtype: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    max_context_tokens: int
    layers: tuple[LayerFacts, ...]
    groups: tuple[TensorGroupFacts, ...]
    note: str | None
