"""A replica simple enough to know its theory: servers in parallel, first come first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

from capplan.simulator.requests import Outcome, Rejection, Request, RequestRecord


class ToyReplica:
    """`num_servers` requests at a time; each takes prompt x `prefill_s`, then output x `decode_s`.

    A pass is made when a request comes, and when one ends.
    """

    def __init__(
        self,
        on_finish: Callable[[RequestRecord], object],
        *,
        num_servers: int = 1,
        prefill_s: float = 0.0,
        decode_s: float = 1.0,
        longest: int = 10**9,
    ) -> None:
        self._on_finish = on_finish
        self._servers, self._prefill_s, self._decode_s = num_servers, prefill_s, decode_s
        self._longest = longest
        self._queue: deque[Request] = deque()  # in order of arrival, those to come included
        self._now = 0.0
        self._running: dict[str, tuple[float, float, float, Request]] = {}
        self._rejected: list[Rejection] = []
        self._tokens = self._max_running = 0
        self.passes: list[float] = []

    @property
    def next_s(self) -> float:
        ends = [finish for finish, *_ in self._running.values()]
        if self._queue and len(self._running) < self._servers:
            ends.append(max(self._now, self._queue[0].arrival_s))
        return min(ends, default=inf)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._queue)

    @property
    def num_used_blocks(self) -> int:
        return sum(request.prompt_tokens for *_, request in self._running.values())

    def submit(self, request: Request) -> str | None:
        if self.passes:
            assert request.arrival_s >= self.passes[-1], "a pass was made too early"
        if request.prompt_tokens > self._longest:
            self._rejected.append(Rejection(request.id, "too long"))
            return "too long"
        self._queue.append(request)
        return None

    def abort(self, request_id: str) -> bool:
        if request_id in self._running:
            del self._running[request_id]
            return True
        kept = [request for request in self._queue if request.id != request_id]
        gone = len(kept) < len(self._queue)
        self._queue = deque(kept)
        return gone

    def first_token_s(self, request_id: str) -> float | None:
        known = self._running.get(request_id)
        return known[1] if known else None

    def advance(self, until_s: float) -> float:
        while (now := self.next_s) < until_s:
            self._now = now
            self.passes.append(now)
            if self._pass(now):
                return now
        return until_s

    def _pass(self, now: float) -> bool:
        done = [entry for entry in self._running.values() if entry[0] <= now]
        for finish, first, begin, r in done:
            del self._running[r.id]
            self._tokens += r.prompt_tokens + r.output_tokens - 1
            self._on_finish(
                RequestRecord(
                    r.id, r.arrival_s, begin, first, finish, r.prompt_tokens, r.output_tokens,
                    0, 0, (),
                )
            )  # fmt: skip
        while self._queue and len(self._running) < self._servers:
            if self._queue[0].arrival_s > now:
                break
            r = self._queue.popleft()
            first = now + r.prompt_tokens * self._prefill_s
            self._running[r.id] = (first + r.output_tokens * self._decode_s, first, now, r)
        self._max_running = max(self._max_running, len(self._running))
        return bool(done)

    def close(self) -> Outcome:
        waiting = [*self._running, *(request.id for request in self._queue)]
        return Outcome(
            end="finished",
            end_s=self._now,
            num_steps=len(self.passes),
            num_empty_passes=0,
            scheduled_tokens=self._tokens,
            num_preemptions=0,
            max_running=self._max_running,
            busy_s=0.0,
            request_seconds=0.0,
            unfinished=tuple(waiting),
            rejected=tuple(self._rejected),
            records=(),
        )
