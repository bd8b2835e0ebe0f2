"""The answer with its proof: bounds first, then the simulated search, then the fleet itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from capplan.errors import UnsupportedError
from capplan.performance.kv_engine import KvEngine
from capplan.planner.bands import gpus_band, latency_band
from capplan.planner.fleet import fleet_of
from capplan.planner.gpus import plan as bounds_of
from capplan.planner.gpus import unsupported
from capplan.planner.money import with_money_and_power
from capplan.planner.question import Question
from capplan.planner.simulated_bands import key_of
from capplan.planner.sizing.candidates import Candidate, Kinds, SearchSpace, candidates_of
from capplan.planner.sizing.nearest import nearest
from capplan.planner.sizing.proof import prove, saturation_per_s
from capplan.planner.sizing.robustness import Growth, at_rates, model_band, months, simulated
from capplan.planner.sizing.search import Found, Search, Sized, search, with_fleet
from capplan.planner.sizing.tradeoffs import trade_offs
from capplan.results.bands import BandedFigure
from capplan.results.gpus import GpusPlan, GpusResult, ServedAs, ServiceLevel
from capplan.results.sizing import Kind, Level, Proof, Sizing, Variation

# Up to so many accelerators each gets an answer of its own; of more only the best are sized.
MOST_COMPARED = 4
_KEPT = 3  # the best of many accelerators and its runners-up
_MORE_STAGES = (2, 4)
_MEMORY = ("weights", "kv_memory")


@dataclass(frozen=True)
class Extras:
    """What is asked beside the count."""

    sensitivity: bool = False  # lengths and bursts too, each a search of its own
    growth: Growth | None = None


@dataclass(frozen=True)
class Sought:
    """What is tried for each accelerator."""

    model_id: str
    engine: KvEngine
    space: SearchSpace
    slo_e2e_s: float | None = None
    extras: Extras = Extras()


def sized_fleet(questions: Sequence[Question], sought: Sought, aims: Search) -> GpusResult:
    """Raises UnsupportedError where no accelerator can do what was asked."""
    bounds = _bounds(questions)
    groups = [questions] if len(questions) > MOST_COMPARED else [[one] for one in questions]
    sized: list[Sized] = []
    cut: list[Kind] = []
    slow: list[Candidate] = []  # hold the model, and miss a limit
    for group in groups:
        candidates: list[Candidate] = []
        for question in group:
            if bounds[question.hardware_id].binding == "unsupported":
                continue
            kinds = _candidates(question, sought)
            candidates += kinds.able
            slow += kinds.slow
            cut += kinds.refused
        found = search(candidates, aims if len(group) == 1 else replace(aims, num_kept=_KEPT))
        sized += found.sized
        cut += found.cut
        if not found.sized:
            slow += candidates
    sized.sort(key=lambda one: (one.rank, one.kind.hardware))
    result = _result(bounds, Found(tuple(sized), tuple(cut)), aims, sought.extras)
    if sized or not slow:
        return result
    # Where weights or KV do not fit, the bounds have said what would.
    first, *others = result.candidates
    moved = replace(first, suggestions=nearest(slow, aims))
    return GpusResult.first_of([moved, *others], result.sizing)


def _candidates(question: Question, sought: Sought) -> Kinds:
    """Where one stage does not hold the model at any degree, more are tried unasked."""

    def of(space: SearchSpace) -> Kinds:
        return candidates_of(question, sought.model_id, sought.engine, space, sought.slo_e2e_s)

    found = of(sought.space)
    if found.able or sought.space.pps != (1,):
        return found
    if any(kind.reason not in _MEMORY for kind in found.refused):
        return found
    more = of(replace(sought.space, pps=_MORE_STAGES))
    return Kinds(more.able, more.slow, found.refused + more.refused)


def _bounds(questions: Sequence[Question]) -> dict[str, GpusPlan]:
    """Of each accelerator by the closed form, an independent view."""
    found: dict[str, GpusPlan] = {}
    refusals: list[UnsupportedError] = []
    for question in questions:
        try:
            found[question.hardware_id] = bounds_of(question)
        except UnsupportedError as refusal:
            refusals.append(refusal)
            found[question.hardware_id] = unsupported(question, refusal)
    if len(refusals) == len(questions):
        raise refusals[0]
    return found


def _result(bounds: dict[str, GpusPlan], found: Found, aims: Search, extras: Extras) -> GpusResult:
    proof: Proof | None = None
    sized = list(found.sized)
    if sized:
        best = sized[0]
        assert best.kind.num_replicas is not None
        proof = prove(best.candidate, best.kind.num_replicas, aims)
        if proof.num_added:
            sized[0] = _enlarged(best, proof.num_replicas)
    plans: dict[str, GpusPlan] = {}
    for one in sized:
        if one.kind.hardware not in plans:
            own = proof if one is sized[0] else None
            plans[one.kind.hardware] = _plan(one, own, aims)
    order = [plans.pop(one.kind.hardware) for one in sized if one.kind.hardware in plans]
    rest = [_left_out(plan, found.cut) for name, plan in bounds.items()
            if name not in {made.hardware for made in order}]  # fmt: skip
    kinds = (*(one.kind for one in sized), *found.cut)
    percentiles = {each.limit.percentile for each in aims.promise.limits}
    sizing = Sizing(
        objective=aims.objective,
        percentile=percentiles.pop() if len(percentiles) == 1 else None,
        kinds=kinds,
        trade_offs=trade_offs(sized, aims.demand.peak_per_s),
        proof=proof,
        model_band=model_band(sized[0]) if sized else None,
        variations=_variations(sized, aims, extras),
        months=months(sized[0], aims, extras.growth) if sized else (),
    )
    return GpusResult.first_of([*order, *rest], sizing)


def _variations(sized: Sequence[Sized], aims: Search, extras: Extras) -> tuple[Variation, ...]:
    if not sized:
        return ()
    found = at_rates(sized[0], aims)
    return found + simulated(sized[0], aims) if extras.sensitivity else found


def _enlarged(one: Sized, num_replicas: int) -> Sized:
    """The same kind with what the proof asked for."""
    kind = one.kind
    assert kind.sustained is not None
    assert kind.e2e_s is not None
    return replace(one, kind=with_fleet(one.candidate, num_replicas, kind.sustained, kind.e2e_s))


def _plan(one: Sized, proof: Proof | None, aims: Search) -> GpusPlan:
    candidate, kind = one.candidate, one.kind
    question = candidate.question
    assert kind.num_replicas is not None
    assert kind.sustained is not None
    num, spares = kind.num_replicas, question.fleet.num_spares
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
        num_gpus=fleet.num_gpus,
        num_nodes=fleet.num_nodes,
        gpus_per_node=fleet.gpus_per_node,
        num_gpus_rounded=fleet.num_bought,
        service_levels=tuple(_service_level(level) for level in levels),
        busy_fraction=busy,
        busy_fraction_with_spares=busy * num / (num + spares),
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
    size = candidate.gpus_per_replica
    each_per_s = rate_per_s / kind.num_replicas
    # Replicas were added, or more were got than the rate needs: the count is taken as needed.
    carried = max(each_per_s, kind.sustained.requests_per_s if kind.sustained else 0.0)
    found = [gpus_band(num_gpus, size, rate_per_s, carried, key_of(candidate.serving, 1.0))]
    key = key_of(candidate.serving, each_per_s / saturation_per_s(candidate))
    ttft_s = next((level.value_s for level in levels if level.key == "ttft"), None)
    for level in levels:
        statistic = f"P{level.percentile:g}" + (f" of {level.kind}" if level.kind else "")
        if level.value_s is not None and level.key in ("ttft", "tpot", "e2e"):
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
        ep=serving.ep,
        dtype=engine.dtype or deployment.model.stored_format,
        kv_dtype=engine.kv_dtype,
        max_num_seqs=config.max_num_seqs,
        max_num_batched_tokens=config.max_num_batched_tokens,
        gpu_memory_utilization=deployment.budget.memory_share,
        enable_prefix_caching=config.enable_prefix_caching,
    )


def _service_level(level: Level) -> ServiceLevel:
    return ServiceLevel(
        level.name, level.limit_s, level.value_s, level.percentile, level.low_s, level.high_s,
        level.kind,
    )  # fmt: skip


def _left_out(plan: GpusPlan, cut: Sequence[Kind]) -> GpusPlan:
    """An accelerator without a simulated plan: what stood in the way."""
    own = [kind for kind in cut if kind.hardware == plan.hardware]
    if not own:
        return plan  # unsupported: it says so
    order = ["unsupported", "weights", "kv_memory", "ttft", "tpot", "e2e", "load", "dominated"]
    nearest = max(own, key=lambda kind: order.index(kind.reason or "unsupported"))
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
