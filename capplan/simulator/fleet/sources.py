"""Where requests come from: a schedule that waits for nobody, or users who wait for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Protocol, runtime_checkable

from capplan.simulator.requests import Request
from capplan.simulator.traffic.traffic import Traffic


@runtime_checkable
class Source(Protocol):
    """New requests, in order of time. What has been taken may decide what comes next."""

    @property
    def next_s(self) -> float:
        """When the next request is sent; infinite if none is, unless another one ends first."""
        ...

    @property
    def lookahead_s(self) -> float:
        """The end of a request has no effect sooner than this; infinite if it never has one."""
        ...

    @property
    def measured_from_s(self) -> float:
        """End of a warm-up phase; infinite while it lasts."""
        ...

    def take(self) -> Request:
        """The request of `next_s`."""
        ...

    def ended(self, request: Request, end_s: float, failed: bool) -> None:
        """The client of a request that was taken has its answer, or has given up (`failed`)."""
        ...


class OpenTraffic:
    """Requests at their `arrival_s`, whatever becomes of those before."""

    lookahead_s = inf
    measured_from_s = 0.0

    def __init__(self, requests: Iterable[Request]) -> None:
        self._coming = iter(requests)
        self._next = next(self._coming, None)
        self.next_s = self._next.arrival_s if self._next else inf

    def take(self) -> Request:
        request = self._next
        assert request is not None
        self._next = following = next(self._coming, None)
        if following is None:
            self.next_s = inf
        else:
            if following.arrival_s < self.next_s:
                raise ValueError(f"request {following.id} arrives before its predecessor")
            self.next_s = following.arrival_s
        return request

    def __iter__(self) -> Iterator[Request]:
        while self._next is not None:
            yield self.take()

    def ended(self, request: Request, end_s: float, failed: bool) -> None:
        pass


class FollowedTraffic:
    """`Traffic` in which answers lead to further requests: conversations, users in a loop."""

    lookahead_s = 0.0  # nobody promises to think before the next turn
    measured_from_s = 0.0

    def __init__(self, traffic: Traffic) -> None:
        self._coming = traffic.requests()
        self._after = traffic.after
        self._next = next(self._coming, None)
        self._following: list[tuple[float, int, Request]] = []
        self._num_following = 0
        self._look()

    def _look(self) -> None:
        self._own_s = self._next.arrival_s if self._next else inf
        self.next_s = min(self._own_s, self._following[0][0]) if self._following else self._own_s

    def take(self) -> Request:
        if self._own_s == self.next_s:
            request = self._next
            assert request is not None
            self._next = next(self._coming, None)
        else:
            request = heappop(self._following)[-1]
        self._look()
        return request

    def ended(self, request: Request, end_s: float, failed: bool) -> None:
        following = self._after(request, end_s, failed=failed)
        if following is not None:
            self._num_following += 1
            heappush(self._following, (following.arrival_s, self._num_following, following))
            self._look()


class ClosedLoop:
    """A fixed number of users who send the next request when they have the last answer.

    The requests are sent in their order. `arrival_s` says from when on a request may be sent: all
    zero for users who never rest; with arrival times this is `vllm bench serve --max-concurrency`,
    a semaphore before a list of requests. `think_s` is a user's pause after each answer, a
    constant or drawn. The users begin evenly over `ramp_up_s`. Of the requests the first `warmup`
    make a phase of their own: the others begin, with their times counted from there, when all of
    these have ended.
    """

    def __init__(
        self,
        requests: Iterable[Request],
        users: int,
        *,
        think_s: float | Callable[[], float] = 0.0,
        ramp_up_s: float = 0.0,
        warmup: int = 0,
    ) -> None:
        if users < 1:
            raise ValueError("a closed loop has at least one user")
        self._coming = iter(requests)
        self._think = think_s if callable(think_s) else None
        self.lookahead_s = 0.0 if callable(think_s) else think_s
        self._idle = [
            ramp_up_s * user / users for user in range(users)
        ]  # from when on each idle user may send
        self._begin = 0.0  # of the phase
        self._warming = warmup  # still to be sent
        self._busy = 0
        self.measured_from_s = inf if warmup else 0.0
        self._next = next(self._coming, None)
        self._held = False  # the next request waits for the end of the warm-up
        self.next_s = inf
        self._look()

    def _look(self) -> None:
        if self._next is None or self._held or not self._idle:
            self.next_s = inf
        else:
            self.next_s = max(self._idle[0], self._begin + self._next.arrival_s)

    def take(self) -> Request:
        request = self._next
        assert request is not None
        sent_s = self.next_s
        heappop(self._idle)
        self._busy += 1
        self._next = next(self._coming, None)
        if self._warming:
            self._warming -= 1
            self._held = not self._warming
        self._look()
        return request._replace(arrival_s=sent_s)

    def ended(self, request: Request, end_s: float, failed: bool) -> None:  # noqa: ARG002
        self._busy -= 1
        rest_s = self._think() if self._think else self.lookahead_s
        heappush(self._idle, end_s + rest_s)
        if self._held and not self._busy:
            self._held = False
            self.measured_from_s = self._begin = end_s
            self._idle = [end_s] * len(self._idle)
            heapify(self._idle)
        self._look()
