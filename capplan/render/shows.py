"""How values look on a screen: three significant digits, the unit chosen in one place."""

from __future__ import annotations

from capplan import units

DIGITS = 3


def duration(seconds: float) -> str:
    return units.format_duration(seconds, digits=DIGITS)


def binary_bytes(size: float) -> str:
    """Memory that an engine allocates: GiB."""
    return units.format_bytes(size, binary=True, digits=DIGITS)


def decimal_bytes(size: float) -> str:
    """Data-sheet sizes: GB."""
    return units.format_bytes(size, binary=False, digits=DIGITS)


def bandwidth(bytes_per_s: float) -> str:
    return units.format_bytes_per_s(bytes_per_s, digits=4)


def flops(flop_per_s: float) -> str:
    return units.format_flop_per_s(flop_per_s, digits=4)


def rate(requests_per_s: float) -> str:
    return units.format_rate(requests_per_s, digits=DIGITS)


def tokens(count: float) -> str:
    """Whole tokens; a fraction of one only where rounding would hide it."""
    return f"{round(count):,}" if count >= 10 or count == round(count) else number(count)


def number(value: float) -> str:
    return units.format_number(value, digits=DIGITS)


def share(fraction: float) -> str:
    return units.format_fraction(fraction, digits=DIGITS)


def money(dollars: float) -> str:
    return units.format_money(dollars, digits=DIGITS)


def count(value: int) -> str:
    return f"{value:,}"


def plural(num: int, noun: str) -> str:
    """`1 replica`, `10 replicas`.

    >>> plural(1, "replica"), plural(10, "replica")
    ('1 replica', '10 replicas')
    """
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def degrees(tp: int | None, pp: int, dp: int, ep: int) -> list[str]:
    """`TP 1`, `DP 8`, `EP 8`: TP always, the others where they are not 1."""
    others = [("PP", pp), ("DP", dp), ("EP", ep)]
    return [f"TP {tp}", *(f"{name} {size}" for name, size in others if size > 1)]
