"""From demand to a number of machines, and to money."""

from __future__ import annotations

import math

# A twelfth of 8,760 hours, as cloud price lists bill a month.
HOURS_PER_MONTH = 730.0
_JOULES_PER_KWH = 3.6e6
# A demand that equals n capacities exactly must give n, not n + 1, after float rounding.
_ROUNDING = 1e-9


def units_needed(demand: float, capacity_per_unit: float) -> int:
    """Smallest whole number of units whose capacities cover the demand.

    >>> units_needed(25_600, 2_500), units_needed(5_000, 2_500), units_needed(0.1, 10)
    (11, 2, 1)
    """
    return max(1, math.ceil(demand / capacity_per_unit * (1 - _ROUNDING)))


def round_up(count: int, multiple: int) -> int:
    """The count rounded up to a multiple: whole nodes, the rows that a kernel pads to.

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


def usd_per_month(usd_per_hour: float) -> float:
    """Dollars a month of 730 hours (8,760 / 12, the month of AWS, Azure and GCP price lists).

    >>> usd_per_month(10.0)
    7300.0
    """
    return usd_per_hour * HOURS_PER_MONTH


def prefill_time_fraction(
    requests_per_s_prefill: float, decode_tokens: int, decode_tokens_per_s: float
) -> float:
    """Share of a replica's work that is prefill: time of a prompt over that of a whole request.

    ``requests_per_s_prefill`` prompts a second where a replica does nothing else, and
    ``decode_tokens_per_s`` where it does nothing but decode: 1 / r against n / d.

    >>> round(prefill_time_fraction(20.0, 250, 1_000.0), 6)
    0.166667
    """
    prefill_s = 1 / requests_per_s_prefill
    decode_s = decode_tokens / decode_tokens_per_s if decode_tokens else 0.0
    return prefill_s / (prefill_s + decode_s)


def average_power_w(tdp_w: float, busy_fraction: float, idle_fraction: float) -> float:
    """Power that rises in a straight line from its idle share to TDP with the time that it works.

    The linear model of Fan, Weber and Barroso, "Power provisioning for a warehouse-sized
    computer", ISCA 2007, with TDP as the busy end.

    >>> round(average_power_w(700.0, 0.5, 0.2), 6)
    420.0
    """
    return tdp_w * (idle_fraction + (1 - idle_fraction) * min(1.0, busy_fraction))


def kwh_per_million_tokens(power_w: float, tokens_per_s: float) -> float:
    """Energy of a million tokens at a steady rate; 1 kWh is 3.6 MJ.

    >>> kwh_per_million_tokens(3_600.0, 1_000.0)
    1.0
    """
    return power_w / tokens_per_s * 1e6 / _JOULES_PER_KWH
