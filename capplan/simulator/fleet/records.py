"""What clients saw, and what became of every attempt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Literal, NamedTuple

from capplan.simulator.requests import Outcome, RequestRecord

# refused: the engine can never serve it (HTTP 400). unfinished: still there when all came to rest.
End = Literal["ok", "timed out", "rejected", "failed", "refused", "unfinished"]


class ClientRecord(NamedTuple):
    """One request as its client knows it, over all attempts. Times on the simulation's clock."""

    id: str
    sent_s: float  # the first attempt
    first_token_s: float | None  # of the attempt that was answered
    end_s: float  # last token, or when the client gave up
    end: End
    num_attempts: int
    prompt_tokens: int
    output_tokens: int  # received
    replica: int | None  # that answered

    @property
    def ttft_s(self) -> float | None:
        """From the first attempt: what the user waited."""
        return None if self.first_token_s is None else self.first_token_s - self.sent_s

    @property
    def e2e_s(self) -> float:
        return self.end_s - self.sent_s

    @property
    def tpot_s(self) -> float | None:
        if self.first_token_s is None or self.output_tokens < 2:
            return None
        return (self.end_s - self.first_token_s) / (self.output_tokens - 1)


# Not by the class's own __new__: it is called for every request.
new_record = tuple.__new__
# By time of end; then of sending; then by name.
IN_ORDER = itemgetter(*(ClientRecord._fields.index(name) for name in ("end_s", "sent_s", "id")))


class LostAttempt(NamedTuple):
    """An attempt that was not answered."""

    id: str
    number: int  # from 1
    replica: int | None
    sent_s: float
    end_s: float
    end: End


@dataclass(frozen=True)
class ReplicaOutcome:
    """One place in the fleet. A replica that failed and came back has several lives."""

    lives: tuple[Outcome, ...]
    records: tuple[RequestRecord, ...]  # answers complete, in order of finish
    num_sent: int  # attempts that the router sent here


@dataclass(frozen=True)
class FleetOutcome:
    """A whole simulation of clients and replicas."""

    end_s: float
    measured_from_s: float  # end of the warm-up phase of a closed loop, else 0
    replicas: tuple[ReplicaOutcome, ...]
    clients: tuple[ClientRecord, ...]  # in order of their end
    lost: tuple[LostAttempt, ...]  # in order of their end
    unwanted: frozenset[str]  # engine records that no client waited for any more
    interrupted: bool = False  # by the user: what was known then; the replicas have no sums

    @cached_property
    def records(self) -> tuple[RequestRecord, ...]:
        """The engine's record of every answer that a client got, in order of finish."""
        if len(self.replicas) == 1 and not self.unwanted:
            return self.replicas[0].records
        found = [
            (record.finish_s, index, number, record)
            for index, replica in enumerate(self.replicas)
            for number, record in enumerate(replica.records)
            if record.id not in self.unwanted
        ]
        found.sort(key=lambda entry: entry[:3])
        return tuple(record for *_, record in found)

    @cached_property
    def counts(self) -> FleetCounts:
        return FleetCounts.of(self)


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """Sums over a whole run. Every client request ends in exactly one of the six ways."""

    num_offered: int  # client requests
    num_ok: int
    num_timed_out: int
    num_rejected: int
    num_failed: int
    num_refused: int
    num_unfinished: int
    num_attempts: int
    num_lost_timed_out: int  # attempts, not clients
    num_lost_rejected: int
    num_lost_failed: int
    computed_tokens: int  # prefill and decode, in all replicas
    # Computed and of no use: given up, lost with a replica, or computed again after a preemption.
    wasted_tokens: int

    @property
    def amplification(self) -> float:
        """Attempts per client request: 1 without retries."""
        return self.num_attempts / self.num_offered if self.num_offered else 1.0

    @property
    def wasted_fraction(self) -> float:
        return self.wasted_tokens / self.computed_tokens if self.computed_tokens else 0.0

    @classmethod
    def of(cls, outcome: FleetOutcome) -> FleetCounts:
        ends: dict[End, int] = {}
        attempts = 0
        for client in outcome.clients:
            ends[client.end] = ends.get(client.end, 0) + 1
            attempts += client.num_attempts
        lost: dict[End, int] = {}
        for attempt in outcome.lost:
            lost[attempt.end] = lost.get(attempt.end, 0) + 1
        computed = sum(
            life.scheduled_tokens for replica in outcome.replicas for life in replica.lives
        )
        # The last token of an answer is sampled, not computed.
        useful = sum(
            record.prompt_tokens - record.cached_tokens + record.output_tokens - 1
            for record in outcome.records
        )
        return cls(
            num_offered=len(outcome.clients),
            num_ok=ends.get("ok", 0),
            num_timed_out=ends.get("timed out", 0),
            num_rejected=ends.get("rejected", 0),
            num_failed=ends.get("failed", 0),
            num_refused=ends.get("refused", 0),
            num_unfinished=ends.get("unfinished", 0),
            num_attempts=attempts,
            num_lost_timed_out=lost.get("timed out", 0),
            num_lost_rejected=lost.get("rejected", 0),
            num_lost_failed=lost.get("failed", 0),
            computed_tokens=computed,
            wasted_tokens=max(0, computed - useful),
        )
