"""What was simulated as the plan of one accelerator, beside its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite

from capplan.planner.bands import latency_band
from capplan.planner.fleet import (
    bought_band,
    fleet_availability,
    fleet_of,
    num_spares,
    replica_availability,
)
from capplan.planner.gpus import plan as bounds_of
from capplan.planner.money import with_money_and_power
from capplan.planner.sizing.banded import count_band, first_token_s, key_at
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.one_pool import OnePoolServing
from capplan.planner.sizing.search import Search, Sized
from capplan.results.bands import BandedFigure, statistic_name
from capplan.results.gpus import GpusPlan, ServedAs, ServiceLevel
from capplan.results.sizing import Availability, Kind, Level, Proof

BEYOND_LINKS = "links join"
# Why a kind was left out, from what is nearest to being of use on.
NEARNESS = (
    "dominated", "load", "e2e", "tpot", "ttft", "token_budget", "interconnect", "kv_memory",
    "weights", "unsupported",
)  # fmt: skip


def availability_of(best: Sized) -> Availability:
    candidate, num = best.candidate, best.kind.num_replicas
    assert num is not None
    question, each = candidate.question, candidate.gpus_per_replica
    return Availability(
        gpu_mtbf_s=question.fleet.mtbf_s,
        mttr_s=question.fleet.mttr_s,
        replica_fraction=replica_availability(question, each),
        num_spares=num_spares(question, num, each),
        fleet_fraction=fleet_availability(question, num, each),
        target_fraction=question.fleet.availability,
    )


def plan_of(one: Sized, proof: Proof | None, aims: Search) -> GpusPlan:
    candidate, kind = one.candidate, one.kind
    question = candidate.question
    assert kind.num_replicas is not None
    assert kind.sustained is not None
    num = kind.num_replicas
    fleet = fleet_of(question, num, candidate.gpus_per_replica)
    busy = aims.demand.peak_per_s / (num * kind.sustained.requests_per_s)
    levels = proof.levels if proof is not None else kind.sustained.levels
    plan = replace(
        bounds_of(question),
        feasible=True,
        binding="simulation",
        binding_limit=kind.sustained.binding,
        tp=kind.tp,
        num_replicas=num,
        num_spare_replicas=fleet.num_spares,
        num_gpus=fleet.num_gpus,
        num_nodes=fleet.num_nodes,
        gpus_per_node=fleet.gpus_per_node,
        num_gpus_rounded=fleet.num_bought,
        service_levels=tuple(_service_level(level) for level in levels),
        busy_fraction=busy,
        busy_fraction_with_spares=busy * num / (num + fleet.num_spares),
        suggestions=(),
        sustained=kind.sustained,
        served_as=_served_as(candidate),
        bands=_bands(one, levels, fleet.num_gpus, aims.demand.peak_per_s),
    )
    plan = with_money_and_power(plan, question, candidate.replica)
    if proof is None or proof.holds:
        return plan
    worst = max(levels, key=lambda level: inf if level.value_s is None else level.used_fraction)
    why = f"{proof.num_replicas:,} replicas still miss {worst.name} P{worst.percentile:g}"
    return _uncounted(plan, worst.key, worst.key, why)


def _bands(
    one: Sized, levels: Sequence[Level], num_gpus: int, rate_per_s: float
) -> tuple[BandedFigure, ...]:
    """Of the count by throughput alone, and of each limit's percentile at the planned rate."""
    candidate, kind = one.candidate, one.kind
    assert kind.num_replicas is not None
    each_per_s = rate_per_s / kind.num_replicas
    carried = kind.sustained.requests_per_s if kind.sustained else 0.0
    counted = count_band(candidate, num_gpus, rate_per_s, carried)
    found = [counted, bought_band(candidate.question, counted, candidate.gpus_per_replica)]
    key = key_at(candidate, each_per_s)
    ttft_s = first_token_s(levels)
    for level in levels:
        statistic = statistic_name(level.percentile, level.kind)
        if level.value_s is not None and isfinite(level.value_s):
            found.append(
                latency_band(level.key, statistic, level.percentile, level.value_s, ttft_s, key)
            )
    return tuple(found)


def _served_as(candidate: Candidate) -> ServedAs:
    serving = candidate.serving
    deployment, config = serving.deployment, serving.config
    engine = deployment.engine
    return ServedAs(
        engine=engine.profile.name,
        pp=engine.pp,
        dp=engine.dp,
        ep=serving.ep,
        dtype=engine.dtype or deployment.model.stored_format,
        kv_dtype=engine.kv_dtype,
        max_num_seqs=config.max_num_seqs // engine.dp,
        max_num_batched_tokens=config.max_num_batched_tokens // engine.dp,
        gpu_memory_utilization=deployment.budget.memory_share,
        enable_prefix_caching=config.enable_prefix_caching,
        one_pool=isinstance(serving, OnePoolServing),
    )


def _service_level(level: Level) -> ServiceLevel:
    return ServiceLevel(
        level.name, level.limit_s, level.value_s, level.percentile, level.low_s, level.high_s,
        level.kind,
    )  # fmt: skip


def left_out(plan: GpusPlan, cut: Sequence[Kind]) -> GpusPlan:
    """An accelerator without a simulated plan: what stood in the way."""
    own = [kind for kind in cut if kind.hardware == plan.hardware]
    if not own:
        return plan  # unsupported: it says so
    # What no link joins is looked at to be told, unasked: it is no reason beside another.
    nearest = min(
        own,
        key=lambda kind: (
            (kind.words or "").startswith(BEYOND_LINKS),
            NEARNESS.index(kind.reason or "unsupported"),
        ),
    )
    reason = nearest.reason or "unsupported"
    plan = replace(plan, service_levels=())  # those of the bounds
    return _uncounted(
        plan, "memory" if reason in ("weights", "kv_memory") else reason, reason, nearest.words
    )


def _uncounted(plan: GpusPlan, binding: str, limit: str, why: str | None) -> GpusPlan:
    """No number of GPUs is known to be enough."""
    return replace(
        plan,
        feasible=False,
        binding=binding,
        binding_limit=limit,
        why=why,
        tp=None,
        num_replicas=None,
        num_gpus=None,
        num_nodes=None,
        num_gpus_rounded=None,
        busy_fraction=None,
        busy_fraction_with_spares=None,
        usd_per_gpu_hour=None,
        usd_per_hour=None,
        usd_per_million_output_tokens=None,
        price_source=None,
        cost=None,
        power=None,
        bands=(),
    )
