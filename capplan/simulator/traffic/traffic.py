"""The traffic of a run: requests that arrive by themselves, and those that follow answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Protocol

from capplan.results.assumptions import Assumption
from capplan.simulator.requests import Request
from capplan.simulator.traffic.conversations import Sessions


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A fixed number of users, each with one request under way or in its head."""

    num_users: int
    ramp_up_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run can want of one class at most; None where the whole may take all of it."""

    num_requests: int | None
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Started:
    """One class in one run: its stream, and its conversations where it has any."""

    requests: Iterator[Request]
    sessions: Sessions | None


class TrafficPart(Protocol):
    """One class of requests: what a run of it is made of, and its means."""

    @property
    def name(self) -> str: ...

    @property
    def rate_per_s(self) -> float | None: ...

    @property
    def mean_prompt_tokens(self) -> float: ...

    @property
    def mean_output_tokens(self) -> float: ...

    @property
    def has_follow_ups(self) -> bool: ...

    @property
    def skipped(self) -> Counter[str]: ...

    def describe(self) -> list[Assumption]: ...

    def start(self) -> Started: ...


class Traffic:
    """Traffic that can be run again and again, each time the same.

    `requests()` begins a run and gives, in order of arrival, what arrives by itself; it makes a
    request when it is asked for one. While `has_follow_ups`, whoever drives the run tells `after`
    about every request that has ended, and puts in what it answers.
    """

    def __init__(
        self,
        parts: Sequence[TrafficPart],
        *,
        closed_loop: ClosedLoop | None,
        num_requests: int | None,
        duration_s: float | None,
        assumptions: Sequence[Assumption] = (),
    ) -> None:
        self._parts = tuple(parts)
        self.closed_loop = closed_loop
        self.num_requests = num_requests  # None: to the end of the trace, the curve or the time
        self.duration_s = duration_s
        self._assumptions = tuple(assumptions)
        self._sessions: dict[str, Sessions] = {}
        self._left = 0

    @property
    def has_follow_ups(self) -> bool:
        """Whether requests follow from answers: a closed loop, conversations."""
        return self.closed_loop is not None or any(part.has_follow_ups for part in self._parts)

    @property
    def rate_per_s(self) -> float | None:
        """Requests per second on average; None where the answers set the pace, or at one moment."""
        rates = [part.rate_per_s for part in self._parts]
        if self.closed_loop is not None or None in rates:
            return None
        return sum(rate for rate in rates if rate is not None)

    @property
    def mean_prompt_tokens(self) -> float:
        return self._mean(lambda part: part.mean_prompt_tokens)

    @property
    def mean_output_tokens(self) -> float:
        return self._mean(lambda part: part.mean_output_tokens)

    @property
    def skipped(self) -> Counter[str]:
        """Rows of trace files that the last run has left out so far, by reason."""
        total: Counter[str] = Counter()
        for part in self._parts:
            total += part.skipped
        return total

    def describe(self) -> tuple[Assumption, ...]:
        """What the plan did not say, and what was taken; traces are read once for it."""
        of_parts = (found for part in self._parts for found in part.describe())
        return (*self._assumptions, *of_parts)

    def requests(self) -> Iterator[Request]:
        """A run from its beginning. Raises CapplanError where a trace file is at fault."""
        started = [part.start() for part in self._parts]
        self._sessions = {
            part.name: run.sessions
            for part, run in zip(self._parts, started, strict=True)
            if run.sessions is not None
        }
        streams = [run.requests for run in started]
        arrivals = streams[0] if len(streams) == 1 else merge(*streams, key=attrgetter("arrival_s"))
        self._left = self.num_requests if self.num_requests is not None else -1
        if self.has_follow_ups:
            return self._counting(self._users() if self.closed_loop is not None else arrivals)
        if self.duration_s is not None:
            end_s = self.duration_s
            arrivals = takewhile(lambda request: request.arrival_s < end_s, arrivals)
        return islice(arrivals, self.num_requests)

    def after(self, request: Request, ended_s: float, *, failed: bool = False) -> Request | None:
        """The request that its client sends next, at its `arrival_s`; None if there is none.

        To be told once for every request, when the client has its answer or has given up on it
        (`failed`: the conversation ends there).
        """
        name, slash, _ = request.id.rpartition("/")
        sessions = self._sessions.get(name + slash)
        if sessions is None or not self._left:
            return None
        following = sessions.follow(request, ended_s, failed)
        if following is None and self.closed_loop is not None:
            following = sessions.begin(ended_s, paused=True)
        return following if following is not None and self._counted(following) else None

    def _users(self) -> Iterator[Request]:
        """The first request of each user."""
        assert self.closed_loop is not None
        (sessions,) = self._sessions.values()
        users = self.closed_loop.num_users
        for user in range(users):
            request = sessions.begin(self.closed_loop.ramp_up_s * user / users)
            if request is None:
                return
            yield request

    def _counting(self, requests: Iterator[Request]) -> Iterator[Request]:
        for request in requests:
            if not self._counted(request):
                return
            yield request

    def _counted(self, request: Request) -> bool:
        """Whether it still belongs to the run."""
        if not self._left or (self.duration_s is not None and request.arrival_s >= self.duration_s):
            return False
        self._left -= 1
        return True

    def _mean(self, of: Callable[[TrafficPart], float]) -> float:
        """Over requests: classes count by their rates."""
        weights = [part.rate_per_s or 1.0 for part in self._parts]
        means = (weight * of(part) for weight, part in zip(weights, self._parts, strict=True))
        return sum(means) / sum(weights)
