"""The scheduler of a run's engine: one replica's loop, as its settings make it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items

from capplan.accuracy.settings import RunSettings
from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.config import V0_WATERMARK, LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.multi_step import MultiStep
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import ChunkedPrefill, PrefillFirst
from capplan.simulator.requests import RequestRecord
from capplan.simulator.step_time import StepTime
from capplan.simulator.watch import Watch

_BLOCK_SIZE = 16


def make_loop(
    settings: RunSettings,
    steps: StepTime,
    kv_tokens: float,
    lengths: Items[tuple[int, int]],
    on_finish: Callable[[RequestRecord], object],
    watch: Watch | None = None,
    cached: bool = False,
) -> ReplicaLoop:
    """A replica at rest. Copies of the attention and pipeline stages take a batch each: their
    slots, budgets and blocks are added up.

    A run that took place had limits that let its longest request through.
    """
    copies = settings.dp * settings.pp
    longest = max(prompt + output for prompt, output in lengths)
    longest_prompt = max(prompt for prompt, _ in lengths)
    everything = sum(prompt + output for prompt, output in lengths)
    # Prompts that are to be found again need room beside those that run.
    held = min(kv_tokens, (1 + cached) * (everything + _BLOCK_SIZE * len(lengths)))
    num_blocks = max(int(held // _BLOCK_SIZE), -(-longest // _BLOCK_SIZE) + 1)
    slots = settings.max_num_seqs * copies
    budget = settings.max_num_batched_tokens * copies
    if settings.engine.scheduler == "vllm-v1" and settings.num_scheduler_steps == 1:
        config = SchedulerConfig(
            num_gpu_blocks=num_blocks + 1,
            block_size=_BLOCK_SIZE,
            max_num_seqs=slots,
            max_num_batched_tokens=budget if settings.chunked_prefill else max(budget, longest),
            max_model_len=max(settings.max_model_len, longest + 1),
            enable_chunked_prefill=settings.chunked_prefill,
            enable_prefix_caching=cached,  # else prompts of benchmarks share nothing
            async_scheduling=settings.async_scheduling,
        )
        return Replica(config, steps, on_finish, watch=watch)
    policy, whole = _policy(settings)
    if whole:
        # Beside a whole prompt the step has room for the decodes, or nothing would overlap.
        beside = min(slots, int(held // (everything / len(lengths)))) if policy.mixes else 0
        budget = max(budget, (longest_prompt if whole == "prompt" else longest) + beside)
    return PolicyReplica(
        LoopConfig(
            num_blocks=num_blocks,
            block_size=_BLOCK_SIZE,
            max_num_seqs=slots,
            max_num_batched_tokens=budget,
            max_model_len=max(settings.max_model_len, longest + 1),
            kv_allocation="max_tokens" if settings.reserves_output else "paged",
            watermark=_watermark(settings, num_blocks, -(-longest // _BLOCK_SIZE)),
            async_scheduling=settings.async_scheduling,
            enable_prefix_caching=cached,
        ),
        policy,
        steps,
        on_finish,
        watch=watch,
    )


def _watermark(settings: RunSettings, num_blocks: int, longest_blocks: int) -> float:
    """Of vLLM V0, unless it would keep out the longest request of a run that took place."""
    fits = longest_blocks <= (1 - V0_WATERMARK) * num_blocks
    return V0_WATERMARK if settings.engine.scheduler == "vllm-v0" and fits else 0.0


def _policy(settings: RunSettings) -> tuple[Policy, str]:
    """The policy, and what must fit into one step: a whole prompt, a whole request, or nothing."""
    scheduler = settings.engine.scheduler
    if scheduler == "sglang":
        # Copies of the attention divide it among them (server_args.py, _handle_data_parallelism).
        budget = settings.max_num_batched_tokens
        return Sglang(
            chunked_prefill_size=budget,
            max_prefill_tokens=max(budget, 16_384 * settings.dp),
            scheduler_recv_interval=settings.scheduler_recv_interval,
            enable_mixed_chunk=settings.enable_mixed_chunk,
        ), ""
    if scheduler == "tensorrt-llm":
        return TensorRtLlm(
            enable_chunked_context=settings.chunked_prefill,
            batch_wait_timeout_iters=settings.batch_wait_timeout_iters,
            batch_wait_max_tokens_ratio=settings.batch_wait_max_tokens_ratio,
            adp_ranks=settings.dp if settings.balances_prompts else 1,
        ), "" if settings.chunked_prefill else "prompt"
    if settings.num_scheduler_steps > 1:  # which only V0 has
        return MultiStep(settings.num_scheduler_steps), "request"
    if scheduler == "vllm-v0" and settings.chunked_prefill:
        return ChunkedPrefill(), ""
    # What is preempted is computed again with its output; TGI reserves and preempts nobody.
    return PrefillFirst(), "prompt" if scheduler == "tgi" else "request"
