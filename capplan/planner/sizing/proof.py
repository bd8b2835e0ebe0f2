"""The chosen fleet at the planned rate, router and all; and what it does when a replica dies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from capplan.planner.fleet import num_spares
from capplan.planner.simulate import SimulateAnswer, SimulateQuestion, simulate_plan
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.parallel import run_all
from capplan.planner.sizing.probe import LEAST_TIMES, WARMUP_TIMES
from capplan.planner.sizing.sample import Judged, Sample, judge
from capplan.planner.sizing.search import Search
from capplan.results.simulate import SimulateResult
from capplan.results.sizing import Proof, ReplicaLoss
from capplan.simulator.fleet.settings import Clients, Failure, FleetSettings
from capplan.simulator.yardstick import Limit

# The proof draws its own random numbers: those that sized the fleet would agree with themselves.
_SEEDS_APART = 1_000_003
_MORE_REQUESTS = 1.6
MOST_ADDED = 8
HEALTH_CHECK_S = 1.0
_RETRIES = 10
_RETRY_AFTER_S = 0.5


@dataclass(frozen=True)
class _Fleet:
    """One fleet under the whole demand."""

    candidate: Candidate
    search: Search

    @property
    def limits(self) -> tuple[Limit, ...]:
        return tuple(dict.fromkeys(each.limit for each in self.search.promise.limits))

    def lengths(self, num_replicas: int) -> tuple[int, float]:
        """Requests to simulate, and the time of the warm-up."""
        rate = self.search.demand.peak_per_s
        in_flight = self.candidate.replica.in_flight(rate / num_replicas) * num_replicas
        warmup = math.ceil(WARMUP_TIMES * in_flight)
        needed = math.ceil(self.search.num_samples * _MORE_REQUESTS)
        total = max(warmup + needed, math.ceil(LEAST_TIMES * in_flight))
        return total, warmup / rate

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
        sample = Sample.of(rows, saturated=answer.result.saturation.saturated)
        promise, kinds = self.search.promise, self.search.demand.kinds
        return judge(sample, promise, kinds, by_interval=False)

    def run(self, settings: FleetSettings, total: int, warmup_s: float) -> SimulateAnswer:
        demand, search = self.search.demand, self.search
        serving = replace(self.candidate.serving, num_replicas=settings.num_replicas)
        return simulate_plan(
            SimulateQuestion(
                serving=serving,
                traffic=lambda seed: demand.traffic(1.0, total, seed),
                stationary=True,
                fleet=settings,
                limits=self.limits,
                percentiles=(50.0,),
                goodput_fraction=search.promise.goodput_fraction,
                warmup_s=warmup_s,
                seed=search.seed + _SEEDS_APART,
                num_replications=1,
            )
        )


class _Proven(NamedTuple):
    """What a run of the whole fleet shows."""

    result: SimulateResult
    judged: Judged

    @property
    def holds(self) -> bool:
        return self.judged.verdict == "holds"


def prove(candidate: Candidate, num_replicas: int, search: Search) -> Proof:
    """Add replicas until the fleet holds, at most MOST_ADDED of them."""
    fleet = _Fleet(candidate, search)
    # Nearly always the first run holds: the loss is simulated beside it.
    num = num_replicas

    def simulated(lost: bool) -> _Proven | ReplicaLoss | None:
        return _lost(fleet, num) if lost else _proven(fleet, num)

    proven, loss = run_all(simulated, (False, True))
    assert isinstance(proven, _Proven)
    assert not isinstance(loss, _Proven)
    while not proven.holds and num < num_replicas + MOST_ADDED:
        num += 1
        proven = _proven(fleet, num)
    if num > num_replicas:
        loss = _lost(fleet, num)
    result = proven.result
    return Proof(
        holds=proven.holds,
        num_replicas=num,
        num_added=num - num_replicas,
        router=search.routing.policy,
        num_requests=result.num_requests,
        num_measured=result.num_measured,
        busy_fraction=result.usage.busy_fraction,
        kv_used_fraction=result.usage.kv_used_fraction,
        levels=proven.judged.levels,
        goodput_fraction=proven.judged.goodput_fraction,
        saturates_at_per_s=num * candidate.saturation_per_s,
        loss=loss,
    )


def _proven(fleet: _Fleet, num_replicas: int) -> _Proven:
    total, warmup_s = fleet.lengths(num_replicas)
    settings = FleetSettings(num_replicas, routing=fleet.search.routing)
    answer = fleet.run(settings, total, warmup_s)
    return _Proven(answer.result, fleet.judged(answer, warmup_s))


def _lost(fleet: _Fleet, num_replicas: int) -> ReplicaLoss | None:
    """One of the replicas, spares included, dies for good in the middle of the run."""
    candidate = fleet.candidate
    num = num_replicas + num_spares(candidate.question, num_replicas, candidate.gpus_per_replica)
    if num < 2:
        return None
    total, warmup_s = fleet.lengths(max(1, num - 1))
    rate = fleet.search.demand.peak_per_s
    at_s = warmup_s
    settings = FleetSettings(
        num,
        clients=Clients(
            retries=_RETRIES, retry_on=("failed",), backoff="fixed", backoff_s=_RETRY_AFTER_S
        ),
        routing=replace(fleet.search.routing, health_check_interval_s=HEALTH_CHECK_S),
        failures=(Failure(0, at_s),),
    )
    total += math.ceil(warmup_s * rate)
    answer = fleet.run(settings, total, 2 * warmup_s)
    run, judged = answer.runs[0], fleet.judged(answer, 2 * warmup_s)
    after = [record.ttft_s for record in run.records if record.finish_s >= at_s]
    return ReplicaLoss(
        num_replicas=num,
        num_sent_again=run.num_attempts - len(run.arrivals),
        num_failed=len(run.failed_at),
        longest_ttft_s=max(after, default=0.0),
        holds=judged.verdict == "holds",
        levels=judged.levels,
    )
