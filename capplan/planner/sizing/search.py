"""The best fleet among many kinds of replica: bounds cut, simulation decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from capplan import units
from capplan.formulas import queueing
from capplan.planner.fleet import fleet_of
from capplan.planner.sizing.banded import banded_sustained, count_range, whole_range
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.demand import Demand
from capplan.planner.sizing.dominance import beaten_by
from capplan.planner.sizing.limits import Promise
from capplan.planner.sizing.objectives import (
    Objective,
    Rank,
    peak_power_w,
    rank,
    usd_per_hour,
)
from capplan.planner.sizing.parallel import run_all
from capplan.planner.sizing.probe import Probe
from capplan.planner.sizing.sample import Judged
from capplan.planner.sizing.store import NoPoints, Points
from capplan.planner.sizing.sustained import SLACK, Curve, replicas_for
from capplan.results.sizing import Kind, Level, Sustained
from capplan.simulator.fleet.settings import Routing

_BATCH = 2  # kinds that are simulated before the next cut: the same on any number of processors


@dataclass(frozen=True)
class Search:
    """What all kinds are held against."""

    demand: Demand
    promise: Promise
    objective: Objective = "cost"
    routing: Routing = field(default_factory=Routing)
    seed: int = 0
    points: Points = field(default_factory=NoPoints)
    num_kept: int = 1  # kinds that a worse one is not cut for: the best and its runners-up
    progress: Callable[[int, int], object] = lambda _done, _of: None

    @property
    def num_samples(self) -> int:
        """Requests that a point needs for every percentile to be a number."""
        peaks = self.demand.peaks_per_s
        kinds = zip(self.demand.kinds, peaks, strict=True)
        return self.promise.samples_needed({kind: peak / sum(peaks) for kind, peak in kinds})

    def curve(self, candidate: Candidate) -> Curve:
        probe = Probe(
            candidate.serving, candidate.replica, self.demand, self.routing,
            self.num_samples, self.seed, self.points, self.promise.asks_for_gaps,
        )  # fmt: skip
        return Curve(
            probe, self.promise, self.demand.kinds, candidate.bound_per_s, candidate.bound_limit
        )


@dataclass(frozen=True)
class Sized:
    """A kind after its simulation."""

    candidate: Candidate
    judged: dict[tuple[int, int], Judged]  # by place of the rate and replicas together
    kind: Kind
    rank: Rank


@dataclass(frozen=True)
class Found:
    """``sized`` from the best on; ``cut`` could not be better, or serve the question at all."""

    sized: tuple[Sized, ...]
    cut: tuple[Kind, ...]


def search(candidates: Sequence[Candidate], question: Search) -> Found:
    """Size the most promising kinds first, until no other can be better."""
    need = question.demand.peak_per_s
    beaten = beaten_by(candidate.question for candidate in candidates)
    waiting = sorted(
        (_least_rank(candidate, question), len(beaten[candidate.question.hardware_id]), i)
        for i, candidate in enumerate(candidates)
    )
    sized: list[Sized] = []
    cut: list[Kind] = []
    done = 0
    while waiting:
        bar = _bar(sized, question.num_kept)
        batch = [i for least, _, i in waiting[:_BATCH] if bar is None or least < bar]
        if not batch:
            break
        waiting = waiting[len(batch) :]
        for i, outcome in zip(batch, _outcomes([candidates[i] for i in batch], question, bar),
                              strict=True):  # fmt: skip
            found = _placed(candidates[i], question, outcome, bar)
            (sized if isinstance(found, Sized) else cut).append(found)  # type: ignore[arg-type]
        done += len(batch)
        question.progress(done, len(candidates))
    cut += [_dominated(candidates[i], need) for *_, i in waiting]
    return Found(tuple(best_first(sized)), tuple(cut))


def best_first(sized: Iterable[Sized], failed: Collection[int] = ()) -> list[Sized]:
    """By rank; an accelerator that another one beats in everything is behind it.

    Those come last whose candidates, by `id`, are known to fail.
    """
    sized = list(sized)
    best: dict[str, Rank] = {}
    for one in sized:
        name = one.kind.hardware
        best[name] = min(best.get(name, one.rank), one.rank)
    beaten = beaten_by(one.candidate.question for one in sized)

    def key(one: Sized) -> tuple[bool, Rank, int, Rank, str]:
        name = one.kind.hardware
        behind = [best[better] for better in beaten[name]]
        fails = id(one.candidate) in failed
        return fails, max([one.rank, *behind]), len(behind), one.rank, name

    return sorted(sized, key=key)


def _bar(sized: Sequence[Sized], num_kept: int) -> Rank | None:
    """What a kind must beat to be of interest; None: nothing yet."""
    ranks = sorted(one.rank for one in sized)
    return ranks[num_kept - 1] if len(ranks) >= num_kept else None


def _least_rank(candidate: Candidate, question: Search) -> Rank:
    """If every replica carried its bound."""
    num = least_replicas(candidate, question.demand.peak_per_s)
    return rank(candidate, num, question.objective, candidate.replica.e2e_s(
        candidate.replica.mean_step(0.0)))  # fmt: skip


def least_replicas(candidate: Candidate, need_per_s: float) -> int:
    return max(1, int(-(-need_per_s // (candidate.bound_per_s * SLACK))))


class _Outcome(NamedTuple):
    """What a worker sends back."""

    num_replicas: int | None
    sustained: Sustained | None
    judged: dict[tuple[int, int], Judged]


def _outcomes(batch: Sequence[Candidate], question: Search, bar: Rank | None) -> list[_Outcome]:
    need = question.demand.peak_per_s

    def simulated(candidate: Candidate) -> _Outcome:
        curve = question.curve(candidate)
        found = replicas_for(curve, need, _most_replicas(candidate, question, need, bar))
        num, sustained = found or (None, None)
        return _Outcome(num, sustained, curve.judged)

    return run_all(simulated, batch)


def _placed(
    candidate: Candidate, question: Search, outcome: _Outcome, bar: Rank | None
) -> Sized | Kind:
    num, sustained = outcome.num_replicas, outcome.sustained
    if num is None or sustained is None:
        if bar is None:
            return candidate.facts("load")
        return _dominated(candidate, question.demand.peak_per_s)
    e2e_s = e2e_of(sustained.levels, candidate)
    kind = with_fleet(candidate, num, sustained, e2e_s)
    best = rank(candidate, num, question.objective, e2e_s)
    return Sized(candidate, outcome.judged, kind, best)


def _most_replicas(candidate: Candidate, question: Search, need: float, bar: Rank | None) -> float:
    """Replicas with which it would still beat the bar."""
    if bar is None or question.objective == "latency":
        return inf

    def beats(num: int) -> bool:
        return rank(candidate, num, question.objective, 0.0) < bar

    low = least_replicas(candidate, need)
    high = 2 * low
    while beats(high) and high < 10**7:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beats(middle) else (low, middle)
    return low


def e2e_of(level_list: Sequence[Level], candidate: Candidate) -> float:
    """Of a whole answer at the sustained rate, where it was measured; else by its parts."""
    levels = {level.key: level.value_s for level in level_list}
    if levels.get("e2e") is not None:
        return levels["e2e"] or 0.0
    ttft_s, tpot_s = levels.get("ttft") or 0.0, levels.get("tpot") or 0.0
    return queueing.e2e_s(ttft_s, tpot_s, candidate.question.workload.output_tokens)


def with_fleet(candidate: Candidate, num: int, sustained: Sustained, e2e_s: float) -> Kind:
    question = candidate.question
    fleet = fleet_of(question, num, candidate.gpus_per_replica)
    rate, each = question.workload.arrival_rate_per_s, sustained.requests_per_s
    return replace(
        candidate.facts(),
        sustained=banded_sustained(sustained, candidate),
        num_replicas=num,
        num_gpus=fleet.num_gpus,
        num_gpus_rounded=fleet.num_bought,
        usd_per_hour=usd_per_hour(question, fleet),
        peak_power_w=peak_power_w(question, fleet),
        e2e_s=e2e_s,
        num_gpus_band=count_range(candidate, fleet.num_gpus, rate, each),
        e2e_band=whole_range(sustained.levels, e2e_s, candidate, each),
    )


def enlarged(one: Sized, num_replicas: int, objective: Objective) -> Sized:
    """The same kind with what the proof asked for."""
    kind = one.kind
    assert kind.sustained is not None
    assert kind.e2e_s is not None
    more = with_fleet(one.candidate, num_replicas, kind.sustained, kind.e2e_s)
    return replace(one, kind=more, rank=rank(one.candidate, num_replicas, objective, kind.e2e_s))


def _dominated(candidate: Candidate, need: float) -> Kind:
    replicas, question = least_replicas(candidate, need), candidate.question
    bill = usd_per_hour(question, fleet_of(question, replicas, candidate.gpus_per_replica))
    words = f"{replicas * candidate.gpus_per_replica:,} GPUs"
    if bill is None:
        words += " or more, no price on file"
    else:
        words += f", {units.format_money(bill, digits=3)}/hour or more"
    return candidate.facts("dominated", words)
