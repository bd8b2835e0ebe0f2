"""From demand to a number of machines, and to money."""

from __future__ import annotations

import math

# A demand that equals n capacities exactly must give n, not n + 1, after float rounding.
_ROUNDING = 1e-9


def units_needed(demand: float, capacity_per_unit: float) -> int:
    """Smallest whole number of units whose capacities cover the demand.

    >>> units_needed(25_600, 2_500), units_needed(5_000, 2_500), units_needed(0.1, 10)
    (11, 2, 1)
    """
    return max(1, math.ceil(demand / capacity_per_unit * (1 - _ROUNDING)))


def round_up(count: int, multiple: int) -> int:
    """The count rounded up to whole nodes (or any other multiple).

    >>> round_up(11, 8), round_up(16, 8)
    (16, 16)
    """
    return -(-count // multiple) * multiple


def usd_per_million_tokens(usd_per_hour: float, tokens_per_s: float) -> float:
    """Price of a million tokens at a steady rate, dollars.

    >>> usd_per_million_tokens(36.0, 10_000)
    1.0
    """
    return usd_per_hour / 3600 / tokens_per_s * 1e6
