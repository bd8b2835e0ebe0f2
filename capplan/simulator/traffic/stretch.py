"""Some of the requests of recorded traffic: on a clock of their own, or at other times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, islice
from typing import Any

from capplan.results.assumptions import Assumption
from capplan.simulator.requests import Request
from capplan.simulator.traffic.timing import Timing
from capplan.simulator.traffic.traffic import Started, Traffic

_new: Any = tuple.__new__


@dataclass(frozen=True)
class RequestsPart:
    """``requests`` begins a run; ``sample`` is what they are like."""

    requests: Callable[[], Iterator[Request]]
    sample: Sequence[Request]
    rate_per_s: float | None = None
    name: str = ""
    has_follow_ups: bool = False

    @cached_property
    def mean_prompt_tokens(self) -> float:
        return sum(each.prompt_tokens for each in self.sample) / len(self.sample)

    @cached_property
    def mean_output_tokens(self) -> float:
        return sum(each.output_tokens for each in self.sample) / len(self.sample)

    @property
    def skipped(self) -> Counter[str]:
        return Counter()

    def describe(self) -> list[Assumption]:
        return []

    def start(self) -> Started:
        return Started(self.requests(), None)


def stretch_of(requests: Sequence[Request], speed: float = 1.0) -> Traffic:
    """At their own times, ``speed`` times as fast, the first one at 0."""

    def run() -> Iterator[Request]:
        for id, at_s, *rest in requests:
            yield _new(Request, (id, (at_s - requests[0].arrival_s) / speed, *rest))

    part = RequestsPart(run, requests)
    return Traffic([part], closed_loop=None, num_requests=len(requests), duration_s=None)


def retimed(requests: Sequence[Request], timing: Timing, num_requests: int) -> Traffic:
    """At the times of a rate, over and over."""

    def run() -> Iterator[Request]:
        times = chain.from_iterable(timing.batches())
        for body, at_s in zip(_over_and_over(requests), times, strict=False):
            yield body._replace(arrival_s=at_s)

    part = RequestsPart(run, requests, timing.mean_per_s(num_requests, None))
    return Traffic([part], closed_loop=None, num_requests=num_requests, duration_s=None)


def longer(requests: Sequence[Request], prompt: float, output: float) -> list[Request]:
    """The same with every prompt and every answer longer by a factor."""
    return [
        each._replace(
            prompt_tokens=max(1, round(each.prompt_tokens * prompt)),
            output_tokens=max(1, round(each.output_tokens * output)),
        )
        for each in requests
    ]


def _over_and_over(requests: Sequence[Request]) -> Iterator[Request]:
    """With a name of its own for each."""
    yield from requests
    for again in count(2):
        for request in requests:
            yield request._replace(id=f"{request.id}~{again}")


def first_of(traffic: Traffic, first: int, num: int) -> list[Request]:
    """So many requests of recorded traffic, from one of them on."""
    return list(islice(traffic.requests(), first, first + num))
