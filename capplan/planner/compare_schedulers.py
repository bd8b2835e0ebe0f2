"""The same traffic, memory and step time under every scheduler that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass

from capplan.errors import CapplanError, UnsupportedError, did_you_mean
from capplan.formulas.statistics import percentile_of
from capplan.planner.simulate import Progress
from capplan.results.schedulers import SchedulerRow, SchedulersResult
from capplan.simulator.config import SchedulerConfig
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.simulate import ONE_REPLICA, simulate_fleet
from capplan.simulator.fleet.sources import Source
from capplan.simulator.latencies import enough
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.config import V0_WATERMARK, KvAllocation, LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import (
    ChunkedPrefill,
    DecodeFirst,
    Orca,
    PrefillFirst,
    StaticBatching,
)
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.simulate import open_replica
from capplan.simulator.step_statistics import StepStatistics
from capplan.simulator.step_time import StepTime
from capplan.simulator.traffic.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler of the comparison; `whole`: a step must carry the longest prompt."""

    key: str
    name: str
    make: Callable[[SchedulerConfig], Policy]
    kv_allocation: KvAllocation = "paged"
    watermark: float = 0.0
    whole: bool = False


CONTENDERS = (
    Contender("static", "static batching", lambda _: StaticBatching(), "max_model_len"),
    Contender("decode-first", "decode first", lambda _: DecodeFirst(), "max_tokens"),
    Contender("orca", "whole prompts (Orca)", lambda _: Orca(), "max_tokens"),
    Contender("prefill-first", "prefill first (V0)", lambda _: PrefillFirst(), "paged",
              V0_WATERMARK, whole=True),
    Contender("chunked", "chunked prefill", lambda _: ChunkedPrefill()),
    Contender("tensorrt-llm", "TensorRT-LLM (no evict)", lambda c: _tensorrt_llm(c), "max_tokens"),
    Contender("tensorrt-llm-max-utilization", "TensorRT-LLM (max utilization)",
              lambda c: _tensorrt_llm(c)),
    Contender("sglang", "SGLang", lambda c: Sglang(chunked_prefill_size=c.max_num_batched_tokens)),
)  # fmt: skip
EXACT = "vllm"  # the exact scheduler, beside them
KEYS = (*(contender.key for contender in CONTENDERS), EXACT)


@dataclass(frozen=True)
class SchedulersQuestion:
    """`config` has the memory, slots and token budget that all of them get.

    All are synchronous but vLLM's, which is run as `config` has it.
    """

    traffic: Callable[[], Traffic | Source | Iterable[Request]]
    config: SchedulerConfig
    step_time: StepTime
    fleet: FleetSettings = ONE_REPLICA
    # Of the engine's server by prompt tokens, in every TTFT.
    front_end_s: Callable[[float], float] = lambda _tokens: 0.0
    keys: tuple[str, ...] = KEYS

    def __post_init__(self) -> None:
        for key in self.keys:
            if key not in KEYS:
                hint = did_you_mean(key, KEYS) or "one of: " + ", ".join(KEYS)
                raise CapplanError(f"`{key}` is not a scheduler", hint=hint)
        if self.fleet.num_replicas > 1:
            raise CapplanError(
                "schedulers are compared on one replica",
                hint="give --replicas 1 and one replica's share of the traffic",
            )
        if self.config.kv_groups:
            raise UnsupportedError(
                "schedulers are compared for models with one kind of KV",
                hint="this one has several (sliding windows, states): leave out "
                "--compare-schedulers",
            )


def compare_schedulers(
    question: SchedulersQuestion, progress: Progress = lambda _done, _of: None
) -> SchedulersResult:
    """Run every scheduler on its own copy of the traffic, one replica each; Ctrl-C ends at once."""
    rows: list[SchedulerRow] = []
    num_requests, lengths = 0, list[int]()
    for key in question.keys:
        progress(len(rows), len(question.keys))
        found = _run(question, key)
        if found is None:
            break
        row, num_requests, lengths = found
        rows.append(row)
    longest = max(lengths, default=0)
    return SchedulersResult(
        num_requests=num_requests,
        longest_prompt_tokens=longest,
        num_longest_prompts=lengths.count(longest),
        interrupted=len(rows) < len(question.keys),
        rows=tuple(rows),
    )


def _run(question: SchedulersQuestion, key: str) -> tuple[SchedulerRow, int, list[int]] | None:
    """The row, how many asked, and the prompts answered; None where it was interrupted."""
    config, watch = question.config, StepStatistics()
    records: list[RequestRecord] = []
    lives: list[PolicyReplica] = []  # one, but for a replica that fails and comes back
    contender = next((c for c in CONTENDERS if c.key == key), None)

    def make(on_finish: Callable[[RequestRecord], object]) -> ReplicaLoop:
        def finished(record: RequestRecord) -> None:
            records.append(record)
            on_finish(record)

        if contender is None:
            return open_replica(config, question.step_time, finished, watch=watch)
        own, policy = loop_config(config, contender), contender.make(config)
        loop = PolicyReplica(own, policy, question.step_time, finished, watch=watch)
        lives.append(loop)
        return loop

    fleet = simulate_fleet(question.traffic(), make, question.fleet)
    if fleet.interrupted:
        return None
    outcomes = fleet.replicas[0].lives
    held, useful = sum(life.held_slots for life in lives), sum(life.useful_slots for life in lives)
    tokens = sum(r.output_tokens for r in records)
    begin_s = min((r.arrival_s for r in records), default=0.0)
    end_s = max((r.finish_s for r in records), default=0.0)
    waits = [(r.ttft_s + question.front_end_s(r.prompt_tokens), r.prompt_tokens) for r in records]
    ttft = sorted(wait for wait, _ in waits)
    longest = max((r.prompt_tokens for r in records), default=0)
    slow = [wait for wait, tokens in waits if tokens == longest]
    gaps = watch.gap_sample
    row = SchedulerRow(
        key=key,
        name=contender.name if contender else "vLLM V1",
        trace_checked=contender is None,
        kv_allocation=contender.kv_allocation if contender else "paged",
        max_num_batched_tokens=budget_of(config, contender),
        end=next((life.end for life in outcomes if life.end != "finished"), "finished"),
        num_answered=sum(client.end == "ok" for client in fleet.clients),
        num_refused=sum(len(life.rejected) for life in outcomes),
        end_s=end_s,
        output_tokens_per_s=tokens / (end_s - begin_s) if end_s > begin_s else 0.0,
        ttft_mean_s=sum(ttft) / len(ttft) if ttft else None,
        ttft_p50_s=_percentile(ttft, 50),
        ttft_p99_s=_percentile(ttft, 99),
        ttft_max_s=ttft[-1] if ttft else None,
        longest_prompt_ttft_s=sum(slow) / len(slow) if slow else None,
        itl_p50_s=_gap_percentile(watch, 50),
        itl_p99_s=_gap_percentile(watch, 99),
        longest_gap_s=gaps.max_s if gaps.count else None,
        wasted_slot_fraction=1 - useful / held if held else None,
        padding_tokens=sum(life.padding_tokens for life in lives),
        max_running=max(life.max_running for life in outcomes),
        num_preemptions=sum(life.num_preemptions for life in outcomes),
        busy_s=sum(life.busy_s for life in outcomes),
    )
    return row, len(fleet.clients), [r.prompt_tokens for r in records]


def loop_config(config: SchedulerConfig, contender: Contender) -> LoopConfig:
    """The settings that a contender gets of those of vLLM."""
    budget = config.max_num_batched_tokens
    return LoopConfig(
        num_blocks=config.usable_blocks,
        block_size=config.block_size,
        max_num_seqs=config.slots,
        max_num_batched_tokens=max(budget, config.max_model_len) if contender.whole else budget,
        max_model_len=config.max_model_len,
        kv_allocation=contender.kv_allocation,
        watermark=contender.watermark,
        enable_prefix_caching=config.enable_prefix_caching and contender.key != "static",
    )


def budget_of(config: SchedulerConfig, contender: Contender | None) -> int | None:
    """Tokens a step; None where the rule knows no budget."""
    if contender is None:
        return config.max_num_batched_tokens
    if contender.key in ("static", "decode-first", "orca"):
        return None
    return loop_config(config, contender).max_num_batched_tokens


def _tensorrt_llm(config: SchedulerConfig) -> TensorRtLlm:
    """Chunked context where the longest prompt may not fit into a step beside the decodes."""
    chunked = config.max_num_batched_tokens < config.max_model_len + config.slots
    return TensorRtLlm(enable_chunked_context=chunked)


def _percentile(ordered: Items[float], percentile: float) -> float | None:
    return percentile_of(ordered, percentile) if enough(len(ordered), percentile) else None


def _gap_percentile(watch: StepStatistics, percentile: float) -> float | None:
    gaps = watch.gap_sample
    return gaps.percentiles((percentile,))[0] if enough(gaps.count, percentile) else None
