"""Rates on a fixed grid, searched by a fixed bisection.

The grid does not depend on the question, so that simulated points are found again, and the
bisection visits the same points in the same order whatever the limits are. Where a set of passing
rates is part of another one, its result is then never higher: at the first point at which the two
searches part, the smaller set failed. Random noise in single points cannot break that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

STEP = 1.02  # from one rate to the next
NUM_RATES = 2048
_ONE = NUM_RATES // 2  # the place of 1 request/s


def rate_at(place: int) -> float:
    """Requests a second.

    >>> rate_at(1024), round(rate_at(1025), 3)
    (1.0, 1.02)
    """
    rate: float = STEP ** (place - _ONE)
    return rate


def place_from(rate_per_s: float) -> int:
    """The first place at which as much or more comes.

    >>> place_from(1.0), place_from(1.001), place_from(1.02)
    (1024, 1025, 1025)
    """
    place = _ONE + math.ceil(math.log(rate_per_s) / math.log(STEP) - 1e-6)
    return min(max(place, 1), NUM_RATES)


def highest(passes: Callable[[int], bool], enough: Callable[[int], bool] | None = None) -> int:
    """The place that bisection finds the highest to pass; 0 where none does.

    ``enough`` is told the highest place still possible, and may end the search early.

    >>> highest(lambda place: place <= 1100)
    1100
    """
    low, high = 0, NUM_RATES
    while high - low > 1:
        if enough is not None and enough(high - 1):
            break
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
