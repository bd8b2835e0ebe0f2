"""When requests arrive: gaps of mean 1, added up, on the clock of a rate curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate, chain, count, islice, repeat
from random import Random

from capplan.simulator.traffic.curves import RateCurve
from capplan.specs.randomness import Arrivals

BATCH = 1024


def all_at_once() -> Iterator[list[float]]:
    """Time 0, without end."""
    while True:
        yield [0.0] * BATCH


def arrival_batches(arrivals: Arrivals, curve: RateCurve, random: Random) -> Iterator[list[float]]:
    """Rising times in seconds, in batches, without end where the curve has none.

    The first request comes after the first gap.
    """
    return curve.times(_counts(gaps_of(arrivals), random))


def gaps_of(arrivals: Arrivals) -> Callable[[Random], list[float]]:
    """A batch of gaps between arrivals at rate 1.

    Poisson: exponential gaps by inversion. Gamma with shape 1/cv^2 (vLLM's `--burstiness`) and mean
    1. Constant: 1. Bursts of n: a gap of n before the first of them, and of 0 before the others.
    """
    log = math.log
    if arrivals.kind == "poisson":
        return lambda random: [-log(1.0 - random.random()) for _ in range(BATCH)]
    if arrivals.kind == "gamma":
        shape, scale = 1 / arrivals.cv**2, arrivals.cv**2
        return lambda random: [random.gammavariate(shape, scale) for _ in range(BATCH)]
    if arrivals.kind == "burst" and arrivals.size is not None:
        size = arrivals.size
        gaps = chain.from_iterable(chain((float(size),), repeat(0.0, size - 1)) for _ in count())
        return lambda _: list(islice(gaps, BATCH))
    return lambda _: [1.0] * BATCH


def _counts(gaps: Callable[[Random], list[float]], random: Random) -> Iterator[list[float]]:
    total = 0.0
    while True:
        batch = list(accumulate(gaps(random), initial=total))
        total = batch[-1]
        yield batch[1:]
