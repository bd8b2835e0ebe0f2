"""What `capplan gpus` is asked: its options as texts, and the question that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from capplan.cli.slos import SloLimit
from capplan.planner import question as q

if TYPE_CHECKING:  # traffic is the simulator's
    from capplan.planner.sizing.demand import Demand


TOKEN_BUDGET = "token budget of a step"  # under Assumed


class GpusOptions(NamedTuple):
    qps: str | None
    slo_ttft: str | None
    slo_tpot: str | None
    prompt_tokens: str | None
    output_tokens: str | None
    peak_factor: str | None
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    gpu_memory: str | None
    gpu_memory_utilization: str | None
    reserve: str | None
    block_size: str | None
    max_num_batched_tokens: str | None
    async_scheduling: bool | None
    enable_prefix_caching: bool | None
    replica_tokens_per_s: str | None
    spares: str | None
    gpus_per_node: str | None
    price: str | None
    commitment: str | None
    price_factor: str | None
    idle_power: str | None
    slo_e2e: str | None = None
    slo_percentile: str | None = None
    slo_goodput: str | None = None
    slo_itl: str | None = None
    arrivals: str | None = None
    seed: str | None = None
    objective: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    max_num_seqs: str | None = None
    plan: str | None = None
    trace: str | None = None
    pp: str | None = None
    expert_parallel: str | None = None
    dp_attention: str | None = None
    growth: str | None = None
    horizon: str | None = None
    sensitivity: bool | None = None
    availability: str | None = None
    mtbf: str | None = None
    mttr: str | None = None
    calibration: str | None = None
    verify: bool = False
    cache: bool = False


@dataclass(frozen=True)
class Asked:
    """The same question for each accelerator, with what only the simulation asks."""

    options: GpusOptions  # with what a plan has filled in
    questions: list[q.Question]
    model_id: str
    limits: list[SloLimit]
    percentile: float | None  # None: bounds only, which speak of means
    prompt: str  # lengths as they were given
    output: str
    demand: Demand | None = None  # of a plan or a trace
    traffic: dict[str, Any] | None = None  # the same, as a plan has it written
