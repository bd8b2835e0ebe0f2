"""One place in the fleet: a replica, and what the router knows of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Protocol, runtime_checkable

from capplan.simulator.fleet.records import ReplicaOutcome
from capplan.simulator.fleet.settings import Admission
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Outcome, Request, RequestRecord

# Makes a replica, empty and at rest, that hands finished requests to its argument.
MakeReplica = Callable[[Callable[[RequestRecord], object]], ReplicaLoop]


@runtime_checkable
class Foreseen(Protocol):
    """A replica that can go on past its finishes, and knows for how long it will have none."""

    stops_at_finish: bool

    def quiet_until_s(self) -> float: ...


SEEN_FINISHES = 64  # the last ones, for the rate at which a replica gets through its queue


class Server:
    """`records` are the finishes that the replica has told of, in order of time.

    `lags`: nobody looks at more of it than at its finishes. While it has none it may be left
    behind, until `quiet_s`.
    """

    def __init__(
        self, index: int, make: MakeReplica, *, keeps_pace: bool = False, lags: bool = False
    ) -> None:
        self.index = index
        self._make = make
        self._lags = lags
        self.records: list[RequestRecord] = []
        self.taken_in = 0  # of them: those whose time has come
        self._begin()
        self.up = True
        self.listed = True  # the router takes it to be up
        self.num_pending = 0
        self.num_sent = 0
        self.last_sent = 0  # number of the last request sent here, counted over the fleet
        # The pace at which it gets through its queue: finishes without a pause between them.
        self._keeps_pace = keeps_pace
        self._finishes: deque[float] = deque(maxlen=SEEN_FINISHES)
        self._paused = False
        self._lives: list[Outcome] = []

    def _begin(self) -> None:
        """A replica that is empty."""
        self.loop = loop = self._make(self.records.append)
        self._quiet_until_s: Callable[[], float] | None = None
        if self._lags and isinstance(loop, Foreseen):
            loop.stops_at_finish = False
            self._quiet_until_s = loop.quiet_until_s
        self.quiet_s = 0.0

    def submit(self, request: Request) -> str | None:
        """The reason where it can never be served."""
        self.quiet_s = 0.0
        return self.loop.submit(request)

    def advance(self, until_s: float) -> None:
        """Make every pass before."""
        advance = self.loop.advance
        while advance(until_s) < until_s:
            pass

    def look_ahead(self) -> None:
        """Set `quiet_s`, when all that has finished is taken in."""
        if self._quiet_until_s is not None:
            self.quiet_s = self._quiet_until_s()
            if self.taken_in < len(self.records):
                self.quiet_s = min(self.quiet_s, self.records[self.taken_in].finish_s)

    def take_in(self) -> RequestRecord:
        """The next finish in order of time."""
        record = self.records[self.taken_in]
        self.taken_in += 1
        if self._keeps_pace:
            if self._paused:
                self._finishes.clear()
            self._finishes.append(record.finish_s)
            self._paused = not (self.loop.num_running or self.loop.num_waiting)
        return record

    def first_token_s(self, attempt_id: str) -> float | None:
        """When a request that is not taken in yet gets its first token, as far as is known."""
        for record in self.records[self.taken_in :]:
            if record.id == attempt_id:
                return record.first_token_s
        return self.loop.first_token_s(attempt_id)

    def estimated_wait_s(self) -> float:
        """Requests waiting x mean gap between the last finishes; 0 before two were seen.

        Finishes before the replica last ran empty do not count: it had nothing to do.
        """
        seen = self._finishes
        if len(seen) < 2:
            return 0.0
        return self.loop.num_waiting * (seen[-1] - seen[0]) / (len(seen) - 1)

    def admits(self, limits: Admission) -> bool:
        loop = self.loop
        waiting = loop.num_waiting
        if waiting >= limits.max_queue_depth:
            return False
        if waiting + loop.num_running >= limits.max_concurrency:
            return False
        return limits.max_queue_wait_s == inf or self.estimated_wait_s() <= limits.max_queue_wait_s

    def die(self) -> None:
        """All that it holds is gone, and what it would have finished in the step that runs."""
        del self.records[self.taken_in :]
        self._lives.append(self.loop.close())
        self.up = False
        self._finishes.clear()

    def come_back(self) -> None:
        self._begin()
        self.up = True

    def close(self) -> float:
        """At the end of the simulation; says when the replica came to rest."""
        if not self.up:
            return 0.0
        self._lives.append(self.loop.close())
        return self._lives[-1].end_s

    def outcome(self) -> ReplicaOutcome:
        return ReplicaOutcome(tuple(self._lives), tuple(self.records), self.num_sent)
