"""What one simulated run leaves behind, for metrics."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from capplan.formulas.statistics import warmup_batches
from capplan.results.simulate import ReplicaLoad
from capplan.simulator.fleet.records import ClientRecord, FleetOutcome
from capplan.simulator.replica_loads import replica_loads
from capplan.simulator.requests import Outcome, RequestRecord
from capplan.simulator.step_statistics import StepStatistics

MSER_BATCH = 5  # requests


@dataclass(frozen=True)
class RunData:
    """One replication, as clients saw it: a request arrives when it is first sent.

    `records` are those of answered requests, in order of arrival; all the others that ended are
    in `failures`. A run that was interrupted knows neither what was refused nor who gave up.
    """

    records: Sequence[RequestRecord]
    arrivals: Sequence[float]  # of all requests, in rising order
    ends: Sequence[float]  # when they left, answered or not, in rising order
    statistics: Sequence[StepStatistics]  # a life of a replica each
    num_replicas: int
    end: str  # finished | stalled | livelock | interrupted
    measured_from_s: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)  # by how they ended
    failed_at: Sequence[float] = ()  # when those were first sent, in rising order
    ends_unanswered: Sequence[float] = ()  # and when they left
    refusals: Counter[str] = field(default_factory=Counter)  # by reason
    unanswered: Sequence[ClientRecord] = ()  # the same, as their clients know them
    replica_of: Mapping[str, int] = field(default_factory=dict)  # where there are several
    num_attempts: int = 0
    # When the attempt was sent that was answered, where it was not the first one.
    attempt_sent_s: Mapping[str, float] = field(default_factory=dict)
    scheduled_tokens: int = 0
    wasted_tokens: int = 0
    loads: Sequence[ReplicaLoad] = ()  # a replica each

    @property
    def last_arrival_s(self) -> float:
        return self.arrivals[-1] if self.arrivals else 0.0

    @property
    def end_s(self) -> float:
        """When the last of those that left had left."""
        return max(self.ends[-1] if self.ends else 0.0, self.last_arrival_s)

    def present(self, time_s: float) -> int:
        """Requests that have arrived and not left."""
        return bisect_right(self.arrivals, time_s) - bisect_right(self.ends, time_s)

    @cached_property
    def _starts(self) -> list[float]:
        """When waiting ended: the first step, or the end of a request that was not answered."""
        first = [record.first_scheduled_s for record in self.records]
        return sorted([*first, *self.ends_unanswered])

    def waiting(self, time_s: float) -> int:
        """Requests that have arrived and not begun."""
        return bisect_right(self.arrivals, time_s) - bisect_right(self._starts, time_s)

    @cached_property
    def settled_s(self) -> float:
        """The end of the warm-up: MSER over end-to-end times in batches, in order of arrival."""
        times = [record.e2e_s for record in self.records]
        starts = range(0, len(times) - MSER_BATCH + 1, MSER_BATCH)
        cut = warmup_batches([sum(times[i : i + MSER_BATCH]) / MSER_BATCH for i in starts])
        return self.records[cut * MSER_BATCH].arrival_s if cut else 0.0


def of_outcome(
    outcome: FleetOutcome,
    statistics: Sequence[StepStatistics],
    num_replicas: int,
    front_end_s: Callable[[int], float],
) -> RunData:
    """A whole run. A client sees every token later by what the front end takes for a prompt."""
    sent = {client.id: client.sent_s for client in outcome.clients if client.num_attempts > 1}
    records: Iterable[RequestRecord] = outcome.records
    attempt_sent_s: dict[str, float] = {}
    if sent:
        # A copy is named `id#2`; its client has waited since the first one.
        firsts = [(record, record.id.partition("#")[0]) for record in records]
        attempt_sent_s = {record.id: record.arrival_s for record, id in firsts if id in sent}
        records = [r._replace(arrival_s=sent.get(id, r.arrival_s)) for r, id in firsts]
    records = [_seen(record, front_end_s(record.prompt_tokens)) for record in records]
    others = [client for client in outcome.clients if client.end != "ok"]
    lives = [life for replica in outcome.replicas for life in replica.lives]
    if outcome.interrupted:  # who was still under way has not failed
        others = [client for client in others if client.end != "unfinished"]
    ends_unanswered = [client.end_s for client in others if client.end != "unfinished"]
    counts = outcome.counts
    return RunData(
        records=sorted(records, key=lambda record: record.arrival_s),
        arrivals=sorted(client.sent_s for client in outcome.clients),
        ends=sorted([*(record.finish_s for record in records), *ends_unanswered]),
        statistics=statistics,
        num_replicas=num_replicas,
        end="interrupted" if outcome.interrupted else ends_of(lives),
        measured_from_s=outcome.measured_from_s,
        failures=Counter(str(client.end) for client in others),
        failed_at=sorted(client.sent_s for client in others),
        ends_unanswered=ends_unanswered,
        refusals=Counter(refusal.reason for life in lives for refusal in life.rejected),
        unanswered=others,
        replica_of={c.id: c.replica for c in outcome.clients if c.replica is not None}
        if num_replicas > 1
        else {},
        num_attempts=counts.num_attempts,
        attempt_sent_s=attempt_sent_s,
        scheduled_tokens=counts.computed_tokens,
        wasted_tokens=counts.wasted_tokens,
        loads=replica_loads(outcome),
    )


def _seen(record: RequestRecord, later_s: float) -> RequestRecord:
    return record._replace(
        first_token_s=record.first_token_s + later_s, finish_s=record.finish_s + later_s
    )


def ends_of(lives: Iterable[Outcome]) -> str:
    """How replicas came to rest: the first that did not finish says it, unless it was stopped."""
    return next((life.end for life in lives if life.end not in ("finished", "stopped")), "finished")
