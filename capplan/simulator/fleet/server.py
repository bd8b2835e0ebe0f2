"""One place in the fleet: a replica, and what the router knows of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf

from capplan.simulator.fleet.records import ReplicaOutcome
from capplan.simulator.fleet.settings import Admission
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Outcome, RequestRecord

# Makes a replica, empty and at rest, that hands finished requests to its argument.
MakeReplica = Callable[[Callable[[RequestRecord], object]], ReplicaLoop]

SEEN_FINISHES = 64  # the last ones, for the rate at which a replica gets through its queue


class Server:
    """`pending` are the requests that somebody waits for, by the id that the engine knows."""

    def __init__(self, index: int, make: MakeReplica) -> None:
        self.index = index
        self._make = make
        self.records: list[RequestRecord] = []
        self.taken_in = 0  # records that the fleet has looked at
        self.loop = make(self.records.append)
        self.up = True
        self.listed = True  # the router takes it to be up
        self.num_pending = 0
        self.num_sent = 0
        self.last_sent = 0  # number of the last request sent here, counted over the fleet
        self._finishes: deque[float] = deque(maxlen=SEEN_FINISHES)
        self._lives: list[Outcome] = []

    def saw_finish(self, finish_s: float) -> None:
        self._finishes.append(finish_s)

    def estimated_wait_s(self) -> float:
        """Requests waiting x mean gap between the last finishes; 0 before two were seen."""
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
        """All that it holds is gone."""
        self._lives.append(self.loop.close())
        self.up = False
        self._finishes.clear()

    def come_back(self) -> None:
        self.loop = self._make(self.records.append)
        self.up = True

    def outcome(self) -> ReplicaOutcome:
        if self.up:
            self._lives.append(self.loop.close())
        lives = tuple(replace(life, records=()) for life in self._lives)
        return ReplicaOutcome(lives, tuple(self.records), self.num_sent)


def advance(servers: Iterable[Server], until_s: float) -> None:
    """Let the replicas make their passes before `until_s`, each for itself."""
    for server in servers:
        loop = server.loop
        while server.up and loop.next_s < until_s:
            loop.advance(until_s)
