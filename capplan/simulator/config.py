"""Scheduler settings under the engine's own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capplan.simulator.requests import Request


@dataclass(frozen=True, slots=True)
class KvGroup:
    """Layers whose KV is kept alike."""

    kind: Literal["full", "sliding", "mamba"]
    block_size: int
    window: int = 0  # tokens, of a sliding group


@dataclass(frozen=True, slots=True)
class EngineRules:
    """Rules that differ between engine versions. Defaults are vLLM 0.33's."""

    name: str = "vllm-0.33"
    checks_the_full_prompt: bool = True  # a profile without sets scheduler_reserve_full_isl off
    threshold_spares_a_lone_request: bool = True
    unregistered_blocks_first: bool = True  # in the free queue
    unchunked_prompt_stops_the_scan: bool = True  # else it is skipped
    victim_returns_its_tokens: bool = True  # priority: taken out of the step, and on with the next
    orders_equal_requests: bool = True  # priority: else equal (priority, arrival) is an error


# October 2025.
VLLM_0_11 = EngineRules(
    name="vllm-0.11",
    checks_the_full_prompt=False,
    threshold_spares_a_lone_request=False,
    unregistered_blocks_first=False,
    unchunked_prompt_stops_the_scan=False,
    victim_returns_its_tokens=False,
    orders_equal_requests=False,
)
CURRENT = EngineRules()


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """One replica. Defaults are those of vLLM 0.33 for a server on an H100-class GPU."""

    num_gpu_blocks: int  # in total; one of them is a placeholder
    block_size: int = 16
    max_num_seqs: int = 1024
    max_num_batched_tokens: int = 8192
    max_model_len: int = 8192
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    long_prefill_token_threshold_adaptive: bool = False
    enable_prefix_caching: bool = True
    policy: Literal["fcfs", "priority"] = "fcfs"
    watermark: float = 0.0
    scheduler_reserve_full_isl: bool = True
    max_num_active_seqs: int | None = None
    prefill_schedule_interval: int = 1
    async_scheduling: bool = True
    # Hybrid models: several groups, and how state groups take part in prefix caching.
    kv_groups: tuple[KvGroup, ...] = ()
    mamba_cache_mode: Literal["none", "align"] = "none"
    prefix_cache_retention_interval: int | None = 0
    # Speculative decoding.
    num_speculative_tokens: int = 0
    num_lookahead_tokens: int = 0
    num_hash_lookahead_tokens: int = 0
    rules: EngineRules = CURRENT

    def __post_init__(self) -> None:
        counts = ("block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.num_gpu_blocks < 2:
            raise ValueError("num_gpu_blocks must be at least 2: one is a placeholder")

    @property
    def is_plain(self) -> bool:
        """One full-attention group, no drafts, current rules: what the counters cover."""
        return not self.kv_groups and not self.num_speculative_tokens and self.rules == CURRENT

    @property
    def usable_blocks(self) -> int:
        return self.num_gpu_blocks - 1

    @property
    def slots(self) -> int:
        """Requests that may run at once."""
        return min(self.max_num_seqs, self.max_num_active_seqs or self.max_num_seqs)

    @property
    def watermark_blocks(self) -> int:
        return int(self.watermark * self.num_gpu_blocks)


def rejection_reason(request: Request, config: SchedulerConfig) -> str | None:
    """Why the engine refuses this request, or None. Such a request would block its queue forever.

    The engine itself refuses prompts of `max_model_len` tokens or more, and does not start with a
    pool that cannot hold one request of that length.
    """
    prompt = request.prompt_tokens
    if prompt < 1 or request.output_tokens < 1:
        return "a request has at least one prompt token and one output token"
    if prompt >= config.max_model_len:
        return f"prompt of {prompt} tokens, max_model_len is {config.max_model_len}"
    outputs = min(request.output_tokens, config.max_model_len - prompt)
    needed = -(-(prompt + outputs - 1) // config.block_size)
    if needed > config.usable_blocks:
        return f"needs {needed} KV blocks, the pool has {config.usable_blocks}"
    whole = not config.enable_chunked_prefill and not config.long_prefill_token_threshold
    if whole and prompt + outputs - 1 > config.max_num_batched_tokens:
        return (
            f"{prompt + outputs - 1} tokens in one step after a preemption, "
            f"max_num_batched_tokens is {config.max_num_batched_tokens}, chunked prefill is off"
        )
    return None
