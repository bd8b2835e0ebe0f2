"""Percentiles, their uncertainty, and where a run has settled."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Two-sided 95 % quantiles of Student's t by degrees of freedom (any table; 1.96 beyond).
_STUDENT_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
# A percentile is shown as a number where at least so many samples lie beyond it.
LEAST_BEYOND = 10


def percentile_rank(count: int, percentile: float) -> tuple[int, int, float]:
    """Between which two elements of a sorted list a percentile lies, and how far along.

    Linear interpolation (Hyndman & Fan 1996, type 7): the default of NumPy, and so what
    `vllm bench serve` prints.

    >>> percentile_rank(101, 99)
    (99, 99, 0.0)
    """
    place = (count - 1) * percentile / 100
    low = math.floor(place)
    return low, math.ceil(place), place - low


def percentile_of(ordered: Sequence[float], percentile: float) -> float:
    """The percentile (0 to 100) of values in rising order.

    >>> percentile_of([1.0, 2.0, 3.0, 4.0], 50)
    2.5
    """
    low, high, share = percentile_rank(len(ordered), percentile)
    return ordered[low] + (ordered[high] - ordered[low]) * share


def samples_needed(percentile: float) -> int:
    """Samples with which `LEAST_BEYOND` of them lie beyond a percentile.

    >>> samples_needed(99), samples_needed(50), samples_needed(99.9)
    (1000, 20, 10000)
    """
    # Rounded first: 100 - 99.9 is not 0.1.
    return math.ceil(round(LEAST_BEYOND * 100 / (100 - percentile), 6))


def student_95(degrees: int) -> float:
    """Student's t, two-sided 95 %."""
    return _STUDENT_95[degrees - 1] if degrees <= len(_STUDENT_95) else 1.96


def section_half_width(overall: float, sections: Sequence[float]) -> float:
    """Half of the 95 % interval of an estimate from its values in sections of the sample.

    Sectioning (Asmussen & Glynn, Stochastic Simulation, 2007, III.5a): the spread of the sections
    about the overall estimate. Sections are stretches of one run, long enough to be nearly
    independent, or replications.
    """
    num = len(sections)
    squares = sum((value - overall) ** 2 for value in sections)
    return student_95(num - 1) * math.sqrt(squares / (num * (num - 1)))


def covering_range(values: Sequence[float], coverage: float) -> tuple[float, float]:
    """Between which of the values the next one of their kind lies, with this chance.

    The k-th of n values has k of n + 1 of what comes next below it, whatever the distribution:
    the ranks of split conformal prediction (Vovk et al., Algorithmic Learning in a Random World,
    2005), and between whole ranks the quantile of type 6 of Hyndman & Fan 1996. With fewer values
    than that takes, the outermost ones: the chance is then lower.

    >>> covering_range([float(n) for n in range(1, 20)], 0.8)
    (2.0, 18.0)
    >>> covering_range([float(n) for n in range(1, 15)], 0.8), covering_range([3.0, 1.0, 2.0], 0.8)
    ((1.5, 13.5), (1.0, 3.0))
    """
    ordered = sorted(values)
    last = len(ordered) - 1
    rank = min(max(0.0, round((1 - coverage) / 2 * (len(ordered) + 1), 9) - 1), last / 2)
    at, share = math.floor(rank), rank - math.floor(rank)
    after = min(at + 1, last)
    low = ordered[at] + share * (ordered[after] - ordered[at])
    high = ordered[last - at] - share * (ordered[last - at] - ordered[last - after])
    return low, high


def warmup_batches(means: Sequence[float]) -> int:
    """How many batch means at the start belong to the warm-up; at most half of them.

    MSER (White, Simulation 69(6), 1997): drop as many as make the standard error of the mean of
    the rest smallest.

    >>> warmup_batches([9.0, 5.0, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9])
    2
    """
    num = len(means)
    best, best_error = 0, math.inf
    total = squares = 0.0
    for first in range(num - 1, -1, -1):
        total += means[first]
        squares += means[first] ** 2
        kept = num - first
        if 2 * first > num or kept < 2:
            continue
        error = max(0.0, squares - total * total / kept) / kept**2
        if error <= best_error:
            best, best_error = first, error
    return best
