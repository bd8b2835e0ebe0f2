"""The scheduler of a deployment's engine as one replica's loop."""

from __future__ import annotations

from collections.abc import Callable

from capplan.errors import UnsupportedError
from capplan.planner.serving import Serving
from capplan.simulator.config import SchedulerConfig
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.config import V0_WATERMARK, LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import ChunkedPrefill, PrefillFirst
from capplan.simulator.requests import RequestRecord
from capplan.simulator.simulate import open_replica
from capplan.simulator.watch import Watch


def open_engine(
    serving: Serving,
    on_finish: Callable[[RequestRecord], object],
    watch: Watch | None = None,
) -> ReplicaLoop:
    """One replica at rest: the exact core for vLLM V1, documented rules for the others.

    Raises UnsupportedError where those do not cover the model's KV.
    """
    config = serving.config
    if serving.scheduler == "vllm-v1":
        return open_replica(config, serving.step_time, on_finish, watch=watch)
    if config.kv_groups:
        raise UnsupportedError(
            f"{serving.profile.name} is simulated for models with one kind of KV",
            hint="this one has several (sliding windows, states): --engine vllm has their rules",
        )
    loop_config, policy = _rules(serving, config)
    return PolicyReplica(loop_config, policy, serving.step_time, on_finish, watch=watch)


def _rules(serving: Serving, config: SchedulerConfig) -> tuple[LoopConfig, Policy]:
    flags, budget = serving.scheduler_flags, config.max_num_batched_tokens
    policy: Policy
    reserves, watermark = False, 0.0
    if serving.scheduler == "sglang":
        policy = Sglang(
            chunked_prefill_size=budget,
            max_prefill_tokens=max(flags.max_prefill_tokens, budget),
            schedule_conservativeness=flags.schedule_conservativeness,
            scheduler_recv_interval=flags.scheduler_recv_interval,
            enable_mixed_chunk=flags.enable_mixed_chunk,
        )
    elif serving.scheduler == "tensorrt-llm":
        reserves = flags.capacity_scheduler_policy == "GUARANTEED_NO_EVICT"
        policy = TensorRtLlm(
            enable_chunked_context=config.enable_chunked_prefill,
            batch_wait_timeout_iters=flags.batch_wait_timeout_iters,
            batch_wait_max_tokens_ratio=flags.batch_wait_max_tokens_ratio,
        )
    else:
        watermark = V0_WATERMARK
        policy = ChunkedPrefill() if config.enable_chunked_prefill else PrefillFirst()
        if not config.enable_chunked_prefill:
            # The engine does not start with less: --max-num-batched-tokens >= --max-model-len.
            budget = max(budget, config.max_model_len)
    loop_config = LoopConfig(
        num_blocks=config.usable_blocks,
        block_size=config.block_size,
        max_num_seqs=config.slots,
        max_num_batched_tokens=budget,
        max_model_len=config.max_model_len,
        kv_allocation="max_tokens" if reserves else "paged",
        watermark=watermark,
        enable_prefix_caching=config.enable_prefix_caching,
        async_scheduling=config.async_scheduling,
    )
    return loop_config, policy
