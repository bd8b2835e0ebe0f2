"""One place in the fleet: a replica, and what the router knows of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

from capplan.simulator.fleet.records import ReplicaOutcome
from capplan.simulator.fleet.settings import Admission
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Outcome, RequestRecord

# Makes a replica, empty and at rest, that hands finished requests to its argument.
MakeReplica = Callable[[Callable[[RequestRecord], object]], ReplicaLoop]

SEEN_FINISHES = 64  # the last ones, for the rate at which a replica gets through its queue


class Server:
    """`records` are the finishes that the replica has told of, in order of time."""

    def __init__(self, index: int, make: MakeReplica, *, keeps_pace: bool = False) -> None:
        self.index = index
        self._make = make
        self.records: list[RequestRecord] = []
        self.taken_in = 0  # of them: those whose time has come
        self.loop = make(self.records.append)
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
        self.loop = self._make(self.records.append)
        self.up = True

    def close(self) -> float:
        """At the end of the simulation; says when the replica came to rest."""
        if not self.up:
            return 0.0
        self._lives.append(self.loop.close())
        return self._lives[-1].end_s

    def outcome(self) -> ReplicaOutcome:
        return ReplicaOutcome(tuple(self._lives), tuple(self.records), self.num_sent)
