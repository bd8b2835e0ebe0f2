"""The `engine:` section of plan.yaml: each engine's settings under its own flag names.

What is not given is the default of the engine's version. `settings` translates the flags that mean
the same into one set of names, vLLM's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from capplan.specs.fields import Count, CountOrZero, Flag, Fraction, Spec, Text

VersionText = Annotated[str, Field(pattern=r"^v?\d+\.\d+(\.\d+)?\S*$", max_length=40)]

Conservativeness = Annotated[float, Strict(), Field(ge=0, le=100, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class SchedulerFlags:
    """What only one engine's scheduler has, under its own names; defaults are the engines'."""

    max_prefill_tokens: int = 16384  # SGLang
    scheduler_recv_interval: int = 1
    schedule_conservativeness: float = 1.0
    enable_mixed_chunk: bool = False
    capacity_scheduler_policy: str = "GUARANTEED_NO_EVICT"  # TensorRT-LLM
    batch_wait_timeout_iters: int = 0
    batch_wait_max_tokens_ratio: float = 0.0


DEFAULT_SCHEDULER_FLAGS = SchedulerFlags()


@dataclass(frozen=True, slots=True)
class FlagValues:
    """Flags of any engine under vLLM's names; None is the default of the version."""

    dtype: str | None
    quantization: str | None
    kv_cache_dtype: str | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    block_size: int | None
    num_gpu_blocks: int | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    async_scheduling: bool | None = None
    long_prefill_token_threshold: int | None = None
    scheduling_policy: str | None = None
    scheduler: SchedulerFlags = DEFAULT_SCHEDULER_FLAGS


class _Engine(Spec):
    version: VersionText | None = Field(
        default=None, description="Say 0.11; none is the newest known."
    )
    dtype: Text | None = Field(
        default=None, description="Weights and activations: auto, bfloat16, ..."
    )
    quantization: Text | None = Field(default=None, description="Weights are converted: fp8, ...")
    kv_cache_dtype: Text | None = Field(default=None, description="auto, fp8, ...")


class VllmEngine(_Engine):
    """vLLM; flags as in `vllm serve --help`, with underscores."""

    name: Literal["vllm"] = "vllm"
    gpu_memory_utilization: Fraction | None = None
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    block_size: Count | None = None
    num_gpu_blocks_override: Count | None = None
    enable_prefix_caching: Flag | None = None
    enable_chunked_prefill: Flag | None = None
    async_scheduling: Flag | None = None
    long_prefill_token_threshold: CountOrZero | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None

    @property
    def settings(self) -> FlagValues:
        return FlagValues(
            dtype=self.dtype,
            quantization=self.quantization,
            kv_cache_dtype=self.kv_cache_dtype,
            gpu_memory_utilization=self.gpu_memory_utilization,
            max_model_len=self.max_model_len,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            block_size=self.block_size,
            num_gpu_blocks=self.num_gpu_blocks_override,
            enable_prefix_caching=self.enable_prefix_caching,
            enable_chunked_prefill=self.enable_chunked_prefill,
            async_scheduling=self.async_scheduling,
            long_prefill_token_threshold=self.long_prefill_token_threshold,
            scheduling_policy=self.scheduling_policy,
        )


class SglangEngine(_Engine):
    """SGLang; flags as in `python -m sglang.launch_server --help`, with underscores."""

    name: Literal["sglang"]
    mem_fraction_static: Fraction | None = None
    context_length: Count | None = None
    max_running_requests: Count | None = None
    chunked_prefill_size: Count | None = None
    max_prefill_tokens: Count | None = None
    page_size: Count | None = None
    disable_radix_cache: Flag | None = None
    disable_overlap_schedule: Flag | None = None
    scheduler_recv_interval: Count | None = None
    schedule_conservativeness: Conservativeness | None = None
    enable_mixed_chunk: Flag | None = None

    @property
    def settings(self) -> FlagValues:
        return FlagValues(
            dtype=self.dtype,
            quantization=self.quantization,
            kv_cache_dtype=self.kv_cache_dtype,
            gpu_memory_utilization=self.mem_fraction_static,
            max_model_len=self.context_length,
            max_num_seqs=self.max_running_requests,
            max_num_batched_tokens=self.chunked_prefill_size or self.max_prefill_tokens,
            block_size=self.page_size,
            enable_prefix_caching=_negated(self.disable_radix_cache),
            async_scheduling=_negated(self.disable_overlap_schedule),
            scheduler=_scheduler_flags(self),
        )


class TensorrtLlmEngine(_Engine):
    """TensorRT-LLM; names of `trtllm-serve` and its LLM API options."""

    name: Literal["tensorrt-llm"]
    free_gpu_memory_fraction: Fraction | None = None
    max_seq_len: Count | None = None
    max_batch_size: Count | None = None
    max_num_tokens: Count | None = None
    tokens_per_block: Count | None = None
    enable_block_reuse: Flag | None = None
    enable_chunked_prefill: Flag | None = None
    capacity_scheduler_policy: Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"] | None = None
    batch_wait_timeout_iters: CountOrZero | None = None
    batch_wait_max_tokens_ratio: Fraction | None = None

    @property
    def settings(self) -> FlagValues:
        return FlagValues(
            dtype=self.dtype,
            quantization=self.quantization,
            kv_cache_dtype=self.kv_cache_dtype,
            gpu_memory_utilization=self.free_gpu_memory_fraction,
            max_model_len=self.max_seq_len,
            max_num_seqs=self.max_batch_size,
            max_num_batched_tokens=self.max_num_tokens,
            block_size=self.tokens_per_block,
            enable_prefix_caching=self.enable_block_reuse,
            enable_chunked_prefill=self.enable_chunked_prefill,
            scheduler=_scheduler_flags(self),
        )


def _scheduler_flags(engine: _Engine) -> SchedulerFlags:
    """Those that the plan gives; the engine's defaults for the rest."""
    names = (field.name for field in fields(SchedulerFlags))
    given = {name: getattr(engine, name, None) for name in names}
    return SchedulerFlags(**{name: value for name, value in given.items() if value is not None})


def _negated(flag: bool | None) -> bool | None:
    return None if flag is None else not flag


def _with_name(value: Any) -> Any:
    """vLLM where no engine is named."""
    return {"name": "vllm", **value} if isinstance(value, dict) and "name" not in value else value


PlanEngine = Annotated[
    Annotated[VllmEngine | SglangEngine | TensorrtLlmEngine, Field(discriminator="name")],
    BeforeValidator(_with_name),
]
