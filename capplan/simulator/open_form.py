"""A replica that others drive: requests one by one, passes up to a horizon, aborts, failures.

The loop of a replica is a generator. In a closed run it is fed with a stream of requests and
never pauses. In the open form (`loop.ReplicaLoop`) its requests come from an inbox, and it pauses
where it would have to know what arrives after the horizon, and after a pass in which a request
finished. Both are the same code; where it pauses changes nothing.

Causality: when `on_finish` is told of a finish, all passes before `finish_s` are made and none at
`finish_s` or later. (Asynchronous as well: the pass that is made while the last token is computed
is made when its step begins.) So what a client does about it, at `finish_s` or later, is never in
the past of a pass. A finish may lie after the horizon, by the step under way at the horizon: a
driver in which something may happen in between (a failure, an impatient client) has to compare.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from typing import Any

from capplan.simulator.requests import Outcome, Rejection, Request, RequestRecord
from capplan.simulator.sequence import Sequence


class OpenForm:
    """What stands around the loop of one replica. See `loop.ReplicaLoop` for the doors."""

    def __init__(self, on_finish: Callable[[RequestRecord], object]) -> None:
        self.on_finish = on_finish
        self.rejected: list[Rejection] = []
        self.num_preemptions = self.num_arrivals = 0
        self.last_arrival_s = -inf
        # Between the doors and the loop.
        self.is_open = self.is_closing = False
        self.stops_at_finish = True  # to be set before the first advance
        self.horizon_s = inf  # the loop makes passes before it
        self.now_s = 0.0  # while it pauses: when it makes the next pass
        self.is_idle = True  # it pauses until somebody comes
        self.wake_s: float | None = None  # time to go on from, where it is not its own
        self.num_dropped = 0  # requests taken out while it paused
        self.inbox: deque[Sequence] = deque()
        self._inside: dict[str, Sequence] = {}
        self._reached_s = 0.0
        self._loop: Iterator[Outcome | None] | None = None
        self._outcome: Outcome | None = None

    # What a scheduler brings.

    @abstractmethod
    def _passes(self, take: Callable[[], Any]) -> Iterator[Outcome | None]:
        """Make passes; yields None where it waits for others, and the outcome at the end."""

    @abstractmethod
    def arrivals(self, requests: Iterable[Request]) -> Iterator[Any]:
        """Sequences in order of arrival; what can never be served is refused."""

    waiting: Any  # a queue

    @abstractmethod
    def present(self) -> list[Sequence]:
        """Everybody in the engine."""

    @abstractmethod
    def drop(self, seq: Any) -> None:
        """Take a request out between two passes."""

    @abstractmethod
    def forget(self) -> None:
        """The memory is lost: nothing is found any more, and no step is under way."""

    # The closed form.

    def run(self, requests: Iterable[Request]) -> Outcome:
        """Simulate until every request has left, or nothing can go on."""
        outcome = next(self._passes(partial(next, self.arrivals(requests), None)))
        assert outcome is not None
        return outcome

    # The open form.

    @property
    def next_s(self) -> float:
        """When it makes a pass next; infinite while nobody is there."""
        if self._outcome is not None:
            return inf
        if self.wake_s is not None:
            return self.wake_s
        if not self.is_idle:
            return self.now_s
        return max(self._inbox_s, self._reached_s)

    @property
    def _inbox_s(self) -> float:
        return self.inbox[0].arrival_s if self.inbox else inf

    @property
    def num_waiting(self) -> int:
        """Submitted and not admitted."""
        return len(self.waiting) + len(self.inbox)

    def submit(self, request: Request) -> str | None:
        """Take in a request at its `arrival_s`; the reason where it can never be served.

        Raises ValueError if it arrives before another that was submitted, or bears the name of one
        that is here.
        """
        if request.id in self._inside:
            raise ValueError(f"request {request.id} is here already")
        seq = next(self.arrivals((request,)), None)
        self.last_arrival_s = request.arrival_s
        if seq is None:
            return self.rejected[-1].reason
        self.num_arrivals += 1
        self._inside[request.id] = seq
        self.inbox.append(seq)
        return None

    def abort(self, request_id: str) -> bool:
        """Drop a request whose client has gone; False where it is not here any more.

        The engine does so between two passes: blocks are free for the next pass, a token under
        way is thrown away.
        """
        seq = self._inside.pop(request_id, None)
        if seq is None:
            return False
        self._take_out_of_everything(seq)
        if self.is_idle and self.wake_s is None and self.present():
            self.wake_s = self._reached_s  # who waits may fit now
        return True

    def abort_all(self) -> tuple[Request, ...]:
        """The replica fails: all that is in it is lost, cached blocks as well.

        Gives back the requests in order of arrival. It may be used on, as one that starts anew.
        """
        lost = sorted(self._inside.values(), key=lambda seq: seq.index)
        for seq in lost:
            self._take_out_of_everything(seq)
        self._inside.clear()
        self.forget()
        if self._loop is not None:
            self.wake_s = self._reached_s
        return tuple(seq.request for seq in lost)

    def _take_out_of_everything(self, seq: Sequence) -> None:
        if seq in self.inbox:
            self.inbox.remove(seq)
        else:
            self.drop(seq)
            self.num_dropped += 1
        seq.finished = True

    def first_token_s(self, request_id: str) -> float | None:
        """When a request in the engine gets its first token, once it is under way; else None.

        It may lie after the time reached, by the step that samples it.
        """
        seq = self._inside.get(request_id)
        return None if seq is None or seq.first_token_s < 0 else seq.first_token_s

    def advance(self, until_s: float) -> float:
        """Make every pass before `until_s`, but stop after one in which a request finished.

        Returns the time reached, at most `until_s`; every finish before it has been told.
        """
        next_s = self.next_s
        if next_s < until_s:
            self.horizon_s = until_s
            if self.is_idle:
                if next_s > self._inbox_s:
                    self.wake_s = next_s  # it comes late
                self.is_idle = False
            self._outcome = next(self._loop or self._opened())
            if not self.is_idle and self._outcome is None and self.now_s < until_s:
                until_s = self.now_s
        reached_s = until_s if until_s < inf else self.now_s
        if reached_s > self._reached_s:
            self._reached_s = reached_s
        return until_s

    def quiet_until_s(self) -> float:
        """Nobody finishes before it unless somebody comes or goes; as far as is easily known."""
        return self.next_s

    def close(self) -> Outcome:
        """The sums of the whole run. What is unfinished stays so."""
        if self._outcome is None:
            self.is_closing = True
            self._outcome = next(self._opened())
        assert self._outcome is not None
        return self._outcome

    def _opened(self) -> Iterator[Outcome | None]:
        """The loop, paused."""
        if self._loop is None:
            deliver = self.on_finish

            def leaves(record: RequestRecord) -> None:
                del self._inside[record.id]
                deliver(record)

            self.is_open, self.on_finish = True, leaves
            self._loop = self._passes(self._take)
            next(self._loop)
        return self._loop

    def _take(self) -> Sequence | None:
        inbox = self.inbox
        return inbox.popleft() if inbox and inbox[0].arrival_s < self.horizon_s else None

    # For the loop.

    def hold_back(self, coming: Sequence | None) -> None:
        """Back into the inbox, for the time of a pause."""
        if coming is not None:
            self.inbox.appendleft(coming)

    def end_of(self, population: int) -> str:
        """How it ends when it is closed while it pauses."""
        if not population and not self.inbox:
            return "finished"
        return "stalled" if self.is_idle and not self.inbox else "stopped"

    def outcome_of(
        self,
        *,
        end: str,
        end_s: float,
        num_steps: int,
        num_empty_passes: int,
        scheduled_tokens: int,
        max_running: int,
        busy_s: float,
        request_seconds: float,
    ) -> Outcome:
        """The sums of the loop, and what only this class knows."""
        left = sorted([*self.present(), *self.inbox], key=lambda seq: seq.index)
        return Outcome(
            end=end,
            end_s=end_s,
            num_steps=num_steps,
            num_empty_passes=num_empty_passes,
            scheduled_tokens=scheduled_tokens,
            num_preemptions=self.num_preemptions,
            max_running=max_running,
            busy_s=busy_s,
            request_seconds=request_seconds,
            unfinished=tuple(seq.request.id for seq in left),
            rejected=tuple(self.rejected),
            records=(),
        )
