"""The answer with its proof: bounds first, then the simulated search, then the fleet itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from capplan.performance.kv_engine import KvEngine
from capplan.planner.gpus import plan_each
from capplan.planner.question import Question
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.nearest import nearest
from capplan.planner.sizing.plans import NEARNESS, availability_of, left_out, plan_of
from capplan.planner.sizing.proof import prove
from capplan.planner.sizing.robustness import Growth, at_rates, model_band, months, simulated
from capplan.planner.sizing.search import Found, Search, Sized, best_first, enlarged, search
from capplan.planner.sizing.space import Kinds, SearchSpace, candidates_of
from capplan.planner.sizing.tradeoffs import trade_offs
from capplan.results.gpus import GpusPlan, GpusResult
from capplan.results.sizing import Kind, Proof, Sizing, Variation

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


@dataclass(frozen=True)
class Answered:
    """The answer, and what it was made of; ``best`` None: no number is enough."""

    result: GpusResult
    best: Sized | None
    aims: Search


def sized_fleet(questions: Sequence[Question], sought: Sought, aims: Search) -> Answered:
    """Raises UnsupportedError where no accelerator can do what was asked."""
    # By the closed form, an independent view.
    bounds = {plan.hardware: plan for plan in plan_each(questions)}
    groups = [questions] if len(questions) > MOST_COMPARED else [[one] for one in questions]
    sized: list[Sized] = []
    cut: list[Kind] = []
    slow: list[Candidate] = []  # hold the model, and miss a limit
    for group in groups:
        candidates: list[Candidate] = []
        for question in group:
            if bounds[question.hardware_id].binding == "unsupported":
                continue
            kinds = _candidates(question, sought, aims.demand.own_prompt_tokens)
            candidates += kinds.able
            slow += kinds.slow
            cut += kinds.refused
        found = search(candidates, aims if len(group) == 1 else replace(aims, num_kept=_KEPT))
        sized += found.sized
        cut += found.cut
        if not found.sized:
            slow += candidates
    result = _result(bounds, Found(tuple(sized), tuple(cut)), aims, sought.extras)
    best = sized[0] if sized and result.feasible else None
    if sized or not slow:
        return Answered(result, best, aims)
    # Where weights or KV do not fit, the bounds have said what would.
    first, *others = result.candidates
    moved = replace(first, suggestions=nearest(slow, aims))
    return Answered(GpusResult.first_of([moved, *others], result.sizing), None, aims)


def _candidates(question: Question, sought: Sought, own_tokens: float | None) -> Kinds:
    """Where one stage does not hold the model at any degree, more are tried unasked."""

    def of(space: SearchSpace) -> Kinds:
        return candidates_of(
            question, sought.model_id, sought.engine, space, sought.slo_e2e_s, own_tokens
        )

    found = of(sought.space)
    if found.able or sought.space.pps != (1,):
        return found
    if any(kind.reason not in _MEMORY for kind in found.refused):
        return found
    more = of(replace(sought.space, pps=_MORE_STAGES))
    return Kinds(more.able, more.slow, found.refused + more.refused)


def _result(bounds: dict[str, GpusPlan], found: Found, aims: Search, extras: Extras) -> GpusResult:
    sized, proof = _proved(found.sized, aims)
    plans: dict[str, GpusPlan] = {}
    for one in sized:
        if one.kind.hardware not in plans:
            own = proof if one is sized[0] else None
            plans[one.kind.hardware] = plan_of(one, own, aims)
    order = [plans.pop(one.kind.hardware) for one in sized if one.kind.hardware in plans]
    rest = [left_out(plan, found.cut) for name, plan in bounds.items()
            if name not in {made.hardware for made in order}]  # fmt: skip
    # Beside what was sized, what is nearest to being of use; equals stay as they were found.
    cut = sorted(found.cut, key=lambda kind: NEARNESS.index(kind.reason or "unsupported"))
    kinds = (*(one.kind for one in sized), *cut)
    percentiles = {each.limit.percentile for each in aims.promise.limits}
    sizing = Sizing(
        objective=aims.objective,
        percentile=percentiles.pop() if len(percentiles) == 1 else None,
        kinds=kinds,
        trade_offs=trade_offs(sized, aims.demand.peak_per_s),
        proof=proof,
        model_band=model_band(sized[0]) if sized else None,
        variations=_variations(sized, aims, extras),
        availability=availability_of(sized[0]) if sized else None,
        months=months(sized[0], aims, extras.growth) if sized else (),
    )
    return GpusResult.first_of([*order, *rest], sizing)


def _proved(found: Sequence[Sized], aims: Search) -> tuple[list[Sized], Proof | None]:
    """From the best on. Replicas that a proof adds may make another kind the better one: it is
    then proved as well."""
    sized = best_first(found)
    proofs: dict[int, Proof] = {}  # by the candidate
    while sized and id(sized[0].candidate) not in proofs:
        best = sized[0]
        assert best.kind.num_replicas is not None
        proof = prove(best.candidate, best.kind.num_replicas, aims, best.judged)
        proofs[id(best.candidate)] = proof
        if proof.num_added:
            sized[0] = enlarged(best, proof.num_replicas, aims.objective)
        failed = [number for number, made in proofs.items() if not made.holds]
        sized = best_first(sized, failed)
    return sized, proofs[id(sized[0].candidate)] if sized else None


def _variations(sized: Sequence[Sized], aims: Search, extras: Extras) -> tuple[Variation, ...]:
    if not sized:
        return ()
    found = at_rates(sized[0], aims)
    return found + simulated(sized[0], aims) if extras.sensitivity else found
