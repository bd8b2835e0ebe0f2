"""The chosen fleet at the planned rate, router and all; and what it does when a replica dies.

A rate that stays the same is raised to the next of the grid, for each replica. A fleet that keeps
its promises at a higher one, up to the highest that its replicas sustain, is taken to keep them at
this one. Whether n replicas are enough for a rate is then never more in doubt than for a higher
one, whatever chance does to single runs, and more traffic does not need fewer of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from capplan.planner.fleet import num_spares
from capplan.planner.simulate import SimulateAnswer, SimulateQuestion, simulate_plan
from capplan.planner.sizing.banded import (
    banded_levels,
    key_at,
    latency_range,
    throughput_range,
)
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.course import Course
from capplan.planner.sizing.grid import place_from, rate_at
from capplan.planner.sizing.parallel import run_all
from capplan.planner.sizing.run_length import RunLength
from capplan.planner.sizing.sample import Gaps, Judged, Sample, gaps_of, judge
from capplan.planner.sizing.search import Search
from capplan.planner.sizing.sustained import Curve
from capplan.results.simulate import SimulateResult
from capplan.results.sizing import Proof, ReplicaLoss
from capplan.simulator.fleet.settings import Clients, Failure, FleetSettings
from capplan.simulator.yardstick import Limit

# The proof draws its own random numbers: those that sized the fleet would agree with themselves.
_SEEDS_APART = 1_000_003
MORE_REQUESTS = 1.6
MOST_ADDED = 8
HEALTH_CHECK_S = 1.0
_RETRIES = 10
_RETRY_AFTER_S = 0.5


def proof_length(
    candidate: Candidate, search: Search, num_replicas: int, rate_per_s: float
) -> RunLength:
    """Of the run of so many replicas at a rate of them all."""
    in_flight = candidate.replica.in_flight(rate_per_s / num_replicas) * num_replicas
    samples = math.ceil(search.num_samples * MORE_REQUESTS)
    return RunLength.of(in_flight, max(samples, search.demand.least_requests))


@dataclass(frozen=True)
class _Fleet:
    """One fleet under the whole demand."""

    candidate: Candidate
    search: Search
    curve: Curve  # what fewer or more of the replicas sustain, as far as it is known

    def places(self, num_replicas: int) -> range:
        """Of the rates for each replica at which so many may prove themselves."""
        first = place_from(self.search.demand.peak_per_s / num_replicas)
        sustained = self.curve.sustained(num_replicas)
        last = first if sustained is None else place_from(sustained.requests_per_s)
        return range(first, max(first, last) + 1)

    @property
    def limits(self) -> tuple[Limit, ...]:
        return tuple(dict.fromkeys(each.limit for each in self.search.promise.limits))

    def lengths(self, num_replicas: int, rate: float) -> tuple[int, float]:
        """Requests to simulate at a rate of the whole fleet, and the time of the warm-up."""
        length = proof_length(self.candidate, self.search, num_replicas, rate)
        return length.total, length.before / rate

    def course(self, warmup_s: float) -> Course | None:
        """Traffic that changes, as it comes; None where it is the same all the time."""
        return self.search.demand.course(self.search.num_samples, warmup_s)

    def steady(self, total: int, warmup_s: float, rate: float) -> Course:
        """A rate that is held."""
        demand = self.search.demand
        factor = rate / demand.peak_per_s
        return Course(lambda seed: demand.traffic(factor, total, seed), warmup_s, "")

    def judged(self, answer: SimulateAnswer, from_s: float) -> Judged:
        """The requests that came from a moment on against what is promised."""
        run = answer.runs[0]
        kind = self.search.demand.kind_of
        rows: list[tuple[float, float | None, float, int]] = [
            (record.ttft_s, record.tpot_s, record.e2e_s, kind(record.id))
            for record in run.records
            if record.arrival_s >= from_s
        ]
        rows += [
            (math.inf, None, math.inf, kind(client.id))
            for client in run.unanswered
            if client.sent_s >= from_s
        ]
        # Where the rate itself rises, more are present later without a queue that never ends.
        saturated = answer.yardstick.stationary and answer.result.saturation.saturated
        gaps: Gaps = ()
        if self.search.promise.asks_for_gaps:
            samples = (watch.gap_sample for watch in run.statistics)
            gaps = gaps_of(samples, from_s, run.last_arrival_s)
        sample = Sample.of(rows, saturated=saturated, gaps=gaps)
        promise, kinds = self.search.promise, self.search.demand.kinds
        return judge(sample, promise, kinds, by_interval=False)

    def run(self, settings: FleetSettings, course: Course) -> SimulateAnswer:
        search = self.search
        serving = replace(self.candidate.serving, num_replicas=settings.num_replicas)
        return simulate_plan(
            SimulateQuestion(
                serving=serving,
                traffic=course.traffic,
                stationary=not course.words,
                fleet=settings,
                limits=self.limits,
                percentiles=(50.0,),
                goodput_fraction=search.promise.goodput_fraction,
                warmup_s=course.from_s,
                seed=search.seed + _SEEDS_APART,
                num_replications=1,
            )
        )


class _Proven(NamedTuple):
    """What a run of the whole fleet shows."""

    result: SimulateResult
    judged: Judged
    rate_per_s: float
    course: str | None  # how the traffic came, where it changes

    @property
    def holds(self) -> bool:
        return self.judged.verdict == "holds"


def prove(
    candidate: Candidate,
    num_replicas: int,
    search: Search,
    judged: Mapping[tuple[int, int], Judged] | None = None,
) -> Proof:
    """Add replicas until the fleet holds, at most MOST_ADDED or as many again.

    ``judged`` are the points that sized it.
    """
    curve = search.curve(candidate)
    curve.judged.update(judged or {})
    fleet = _Fleet(candidate, search, curve)
    # Nearly always the first run holds: the loss is simulated beside it.
    num = num_replicas

    def simulated(lost: bool) -> _Proven | ReplicaLoss | None:
        return _lost(fleet, num) if lost else _proven(fleet, num)

    proven, loss = run_all(simulated, (False, True))
    assert isinstance(proven, _Proven)
    assert not isinstance(loss, _Proven)
    if not proven.holds:
        enough = _enough if proven.course else _enough_at_a_rate
        num, proven = enough(fleet, num_replicas, proven)
        if num > num_replicas:
            loss = _lost(fleet, num)
    result = proven.result
    return Proof(
        holds=proven.holds,
        num_replicas=num,
        num_added=num - num_replicas,
        router=search.routing.policy,
        course=proven.course,
        rate_per_s=proven.rate_per_s,
        num_requests=result.num_requests,
        num_measured=result.num_measured,
        busy_fraction=result.usage.busy_fraction,
        kv_used_fraction=result.usage.kv_used_fraction,
        levels=banded_levels(proven.judged.levels, candidate, proven.rate_per_s / num),
        goodput_fraction=proven.judged.goodput_fraction,
        saturates_at_per_s=num * candidate.saturation_per_s,
        saturates_band=throughput_range(candidate, num * candidate.saturation_per_s),
        loss=loss,
    )


def _enough_at_a_rate(fleet: _Fleet, num_replicas: int, missed: _Proven) -> tuple[int, _Proven]:
    """The fewest that hold at the rate or a higher one; what they show nearest to it."""
    num, tried = num_replicas, fleet.places(num_replicas)[1:]
    while True:
        for place in tried:
            found = _proven(fleet, num, place)
            if found.holds:
                return num, found
        if num >= num_replicas + MOST_ADDED:
            return num, missed
        num += 1
        missed = _proven(fleet, num)
        if missed.holds:
            return num, missed
        tried = fleet.places(num)[1:]


def _enough(fleet: _Fleet, num_replicas: int, missed: _Proven) -> tuple[int, _Proven]:
    """More replicas, twice as many more each time; then the fewest between that hold."""
    low, step, most = num_replicas, 1, num_replicas + max(MOST_ADDED, num_replicas)
    high, found = low, missed
    while not found.holds and high < most:
        low, high = high, min(high + step, most)
        step *= 2
        found = _proven(fleet, high)
    while found.holds and high - low > 1:
        middle = (low + high) // 2
        tried = _proven(fleet, middle)
        if tried.holds:
            high, found = middle, tried
        else:
            low = middle
    return high, found


def _proven(fleet: _Fleet, num_replicas: int, place: int | None = None) -> _Proven:
    """At a place of the grid for each replica; the first that covers the demand."""
    rate = fleet.search.demand.peak_per_s
    if place is None:
        place = place_from(rate / num_replicas)
    held = max(rate, rate_at(place) * num_replicas)
    total, warmup_s = fleet.lengths(num_replicas, held)
    course = fleet.course(warmup_s)
    if course is None:
        course, rate = fleet.steady(total, warmup_s, held), held
    settings = FleetSettings(num_replicas, routing=fleet.search.routing)
    answer = fleet.run(settings, course)
    return _Proven(answer.result, fleet.judged(answer, course.from_s), rate, course.words or None)


def _lost(fleet: _Fleet, num_replicas: int) -> ReplicaLoss | None:
    """One of the replicas, spares included, dies for good when most requests come."""
    candidate = fleet.candidate
    num = num_replicas + num_spares(candidate.question, num_replicas, candidate.gpus_per_replica)
    if num < 2:
        return None
    rate = fleet.search.demand.peak_per_s
    total, warmup_s = fleet.lengths(max(1, num - 1), rate)
    total += math.ceil(warmup_s * rate)
    course = fleet.course(warmup_s) or fleet.steady(total, warmup_s, rate)
    at_s = course.from_s
    settings = FleetSettings(
        num,
        clients=Clients(
            retries=_RETRIES, retry_on=("failed",), backoff="fixed", backoff_s=_RETRY_AFTER_S
        ),
        routing=replace(fleet.search.routing, health_check_interval_s=HEALTH_CHECK_S),
        failures=(Failure(0, at_s),),
    )
    settled_s = at_s + warmup_s
    answer = fleet.run(settings, replace(course, from_s=settled_s))
    run, judged = answer.runs[0], fleet.judged(answer, settled_s)
    after = [record.ttft_s for record in run.records if record.finish_s >= at_s]
    longest_s, each = max(after, default=0.0), rate / max(1, num - 1)
    return ReplicaLoss(
        num_replicas=num,
        num_sent_again=run.num_attempts - len(run.arrivals),
        num_failed=len(run.failed_at),
        longest_ttft_s=longest_s,
        longest_ttft_band=latency_range("ttft", 100.0, longest_s, None, key_at(candidate, each)),
        holds=judged.verdict == "holds",
        falls_behind=judged.falls_behind,
        levels=banded_levels(judged.levels, candidate, each),
    )
