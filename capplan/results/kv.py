"""`capplan kv`: the question as it was understood, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.engine_log import LogComparison
from capplan.results.gpus import Suggestion
from capplan.results.memory import MemoryBudget


@dataclass(frozen=True, slots=True)
class KvInputs:
    """The question, in base units."""

    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int | None
    pp: int
    dcp: int
    dp_attention: int
    engine: str
    engine_version: str | None
    context_tokens: int
    gpu_memory_bytes: int | None
    gpu_memory_utilization: float
    reserve_bytes: int | None
    block_size: int
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    async_scheduling: bool
    enable_prefix_caching: bool
    lengths: str
    static_length: int | None
    engine_log: str | None


@dataclass(frozen=True, slots=True)
class KvLayerKind:
    """Layers that keep the same amount, on one GPU."""

    name: str
    kind: str
    num_layers: int
    bytes_per_token: float  # all its layers, one GPU
    window: int | None
    state_bytes_per_sequence: float


@dataclass(frozen=True, slots=True)
class KvGroupFacts:
    """Groups of layers that keep alike: blocks of their own out of the common pool."""

    kind: str  # full | sliding | chunked | state
    reach_tokens: int | None  # window or chunk
    num_layers: int
    num_groups: int
    block_size: int | None  # tokens; None where a block is a state
    page_bytes_per_gpu: int  # one block of one layer
    blocks_at_max_model_len: int  # of one request, all its groups, in its prefill
    blocks_in_prefill: int  # the same at the asked context
    blocks_in_decode: int


@dataclass(frozen=True, slots=True)
class KvSizing:
    """The KV pool of one replica in blocks, as vLLM allocates and prints it."""

    block_size: int  # tokens
    max_model_len: int
    num_padding_layers: int
    bytes_per_block_per_gpu: int
    num_blocks: int  # with the one that is never handed out
    printed_tokens: int  # "GPU KV cache size" in the engine's log; of hybrids not the capacity
    capacity_tokens: int  # in sequences of the asked context
    num_sequences: int  # of the asked context: one in its prefill, the others decoding
    max_concurrency: float  # as the engine prints it, at max_model_len
    max_concurrency_at_context: float
    starts: bool  # the engine's check: one request of max_model_len fits
    estimated_max_model_len: int
    groups: tuple[KvGroupFacts, ...]


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
    """What one block size wastes and costs."""

    block_size: int
    mean_waste_tokens: float
    waste_fraction: float
    block_table_bytes: int  # of one sequence of the asked context
    contiguous_bytes: float  # one block of one layer on one GPU
    used_tokens: int
    paged_slots: int
    paged_utilisation: float
    num_requests: int | None  # of these lengths, held at once; None where windows or states are


@dataclass(frozen=True, slots=True)
class SplitRow:
    """A number of the whole model, and what of it one GPU holds."""

    name: str
    num_whole: int
    num_per_gpu: int
    note: str | None


@dataclass(frozen=True, slots=True)
class StageRow:
    """One pipeline stage; ``decides`` is that with the fewest blocks."""

    stage: int
    num_layers: int
    weight_bytes_per_gpu: float
    kv_pool_bytes_per_gpu: float
    bytes_per_block_per_gpu: int
    num_blocks: int | None  # None: a stage without KV
    decides: bool


@dataclass(frozen=True, slots=True)
class KvResult:
    """Sizes of a model, and what of it fits on one replica."""

    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int
    pp: int
    dcp: int
    dp_attention: int
    num_gpus: int
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
    reserve_bytes_per_gpu: int  # all that is neither weights nor KV
    kv_pool_bytes_per_gpu: float
    num_sequences: int  # over all copies of the attention
    num_sequences_low: int  # at the ends of the pool's range
    num_sequences_high: int
    pool_tokens: int
    longest_context_tokens: int  # for one request
    mean_length_tokens: int  # of the request lengths
    num_sequences_at_mean_length: int
    num_sequences_at_max_model_len: int
    block_size: int  # as allocated: larger than asked for where a block must hold a state
    memory: MemoryBudget  # of the GPU that has least room
    stages: tuple[StageRow, ...]
    split: tuple[SplitRow, ...]
    sizing: KvSizing
    layers: tuple[KvLayerKind, ...]
    fits: tuple[KvFit, ...]
    num_lengths: int
    lengths_total_tokens: int
    static_length: int
    static_slots: int
    static_utilisation: float
    num_static_requests: int | None
    blocks: tuple[BlockSizeRow, ...]
    advice: tuple[Suggestion, ...]  # what makes it fit, nearest first
    log: LogComparison | None
