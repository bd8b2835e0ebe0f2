"""How traffic comes in the proof: a trace or a curve over time around its busiest minutes.

The search holds the peak and draws arrivals at random; the proof of traffic that changes takes it
as it changes, from some minutes before the peak on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from capplan import units
from capplan.simulator.requests import Request
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.curves import RateCurve, curve_of
from capplan.simulator.traffic.stretch import first_of, longer, retimed, stretch_of
from capplan.simulator.traffic.timing import Timing
from capplan.simulator.traffic.traffic import Traffic
from capplan.specs.rates import ConstantRate, ServegenRates
from capplan.specs.traffic import DEFAULT_RATE_PER_S, TrafficClass, TrafficSpec

PEAK_WINDOW_S = 300.0
LEAD_S = 300.0  # before the busiest minutes: what came then is still there
MOST_REQUESTS = 20_000  # of a proof: more would take longer than the search


@dataclass(frozen=True)
class Course:
    """``traffic`` by seed; requests before ``from_s`` are not judged."""

    traffic: Callable[[int], Traffic]
    from_s: float
    words: str


@dataclass(frozen=True)
class Recorded:
    """A trace with times of its own; ``times_s`` rise from the first request's 0.

    ``lengths``: its prompts and answers are longer by these factors.
    """

    spec: TrafficSpec
    folder: Path
    times_s: Sequence[float]
    lengths: tuple[float, float] = (1.0, 1.0)

    @cached_property
    def busiest(self) -> tuple[int, int]:
        """The first request of the busiest minutes, and the one after their last.

        >>> Recorded(TrafficSpec(), Path(), [0, 1, 2, 2.5, 3, 4, 1000]).busiest
        (0, 6)
        """
        times, span_s = self.times_s, self.window_s
        counts = (bisect_right(times, at + span_s) - i for i, at in enumerate(times))
        most, first = max((count, -i) for i, count in enumerate(counts))
        return -first, most - first

    @property
    def window_s(self) -> float:
        return min(PEAK_WINDOW_S, self.times_s[-1])

    @property
    def peak_per_s(self) -> float:
        """Over the busiest minutes; 0 where all come at one moment."""
        if self.window_s <= 0:
            return 0.0
        first, last = self.busiest
        # The whole of a short trace has as many gaps.
        num = last - first - int(self.window_s < PEAK_WINDOW_S)
        return round(num / self.window_s, 9) if num else 1 / self.window_s

    @cached_property
    def sample(self) -> Sequence[Request]:
        """From the busiest minutes on, and after the last those that came before."""
        first, _ = self.busiest
        found = first_of(self.whole, first, MOST_REQUESTS)
        found += first_of(self.whole, 0, min(first, MOST_REQUESTS - len(found)))
        return found if self.lengths == (1.0, 1.0) else longer(found, *self.lengths)

    @cached_property
    def own_prompt_tokens(self) -> float | None:
        """Mean prompt tokens beside those that others may have; None where nothing is shared."""
        if not any(each.prefix for each in self.sample):
            return None
        own = (max(1, r.prompt_tokens - sum(n for _, n in r.prefix)) for r in self.sample)
        return sum(own) / len(self.sample)

    @property
    def whole(self) -> Traffic:
        return requests_of(self.spec, 0, self.folder)

    def at(self, rate: TrafficClass, num_requests: int, seed: int) -> Traffic:
        """The same requests at the times of a rate."""
        return retimed(self.sample, Timing(rate, seed, "", self.folder), num_requests)

    def course(self, rate_per_s: float, num_needed: int, warmup_s: float) -> Course | None:
        """Its busiest minutes, or as many around them as hold the requests that are needed.

        None where the whole trace does not hold them.
        """
        times, speed = self.times_s, rate_per_s / self.peak_per_s
        first, last = self.busiest
        first = max(0, first - max(0, num_needed - (last - first)) // 2)
        last = min(len(times), max(last, first + num_needed))
        first = max(0, min(first, last - num_needed))
        if last - first < num_needed:
            return None
        begin = bisect_left(times, times[first] - max(LEAD_S, warmup_s * speed))
        begin = max(begin, first - MOST_REQUESTS // 2)
        last = min(last, max(begin + MOST_REQUESTS, first + num_needed))
        lead_s, whole_s = times[first] - times[begin], times[last - 1] - times[begin]
        words = f"{_span(whole_s)} of the trace as recorded, the first {_span(lead_s)} not judged"
        if abs(speed - 1) > 1e-6:
            words += f"; {speed:.3g} times as fast"

        def traffic(_seed: int) -> Traffic:
            return stretch_of(first_of(self.whole, begin, last - begin), speed)

        return Course(traffic, lead_s / speed, words)


def curved(spec: TrafficSpec, folder: Path, num_needed: int, warmup_s: float) -> Course | None:
    """A rate that changes, around the moment at which most come; None where it does not."""
    curves = [curve_of_class(part) for part in spec.parts]
    moment_s, rate_per_s = busiest_moment(curves)
    if rate_per_s is None:
        return None
    judged_s = max(PEAK_WINDOW_S, num_needed / rate_per_s)
    lead_s = max(LEAD_S, warmup_s)
    if (judged_s + lead_s) * rate_per_s > MOST_REQUESTS:
        judged_s = max(num_needed / rate_per_s, MOST_REQUESTS / 2 / rate_per_s)
        lead_s = max(warmup_s, min(lead_s, MOST_REQUESTS / 2 / rate_per_s))
    from_s = moment_s - lead_s
    if from_s < 0:
        days = {curve.length_s for curve in curves if not curve.is_constant}
        if len(days) == 1 and all(c.then == "repeat" or c.is_constant for c in curves):
            from_s %= days.pop()
        else:
            from_s, lead_s = 0.0, moment_s
    run = spec.model_copy(update={"requests": None, "duration": lead_s + judged_s})
    words = f"{_span(lead_s + judged_s)} of the curve, from {_span(lead_s)} before its peak on"
    return Course(lambda seed: requests_of(run, seed, folder, from_s), lead_s, words)


def busiest_moment(curves: Sequence[RateCurve]) -> tuple[float, float | None]:
    """When most come over all classes, and their rate; no rate where nothing ever changes."""
    moments = sorted({m for c in curves if not c.is_constant for m in c.moments_s})
    if not moments:
        return 0.0, None
    rate, first = max((sum(c.rate_at(m) for c in curves), -m) for m in moments)
    return -first, rate


def curve_of_class(part: TrafficClass) -> RateCurve:
    """Of its sessions where it has conversations."""
    assert not isinstance(part.rate, ServegenRates)  # not sized
    rate = part.rate or ConstantRate.model_construct(kind="constant", rate=DEFAULT_RATE_PER_S)
    return curve_of(rate, part.peak_factor)


def _span(time_s: float) -> str:
    return units.format_duration(time_s, digits=3)
