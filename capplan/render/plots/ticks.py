"""Axes with few, round ticks: the same on paper and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from capplan.render.plots.chart import Axis

MOST_TICKS = 6


def plain(value: float) -> str:
    """`0.05`, `12`, `1,500`: never a power of ten."""
    return f"{value:,.10g}"


def linear(
    label: str,
    low: float,
    high: float,
    show: Callable[[float], str] = plain,
    *,
    whole: bool = False,
) -> Axis:
    """From ``low`` to ``high`` with ticks at 1, 2 or 5 x a power of ten; ``whole``: of integers."""
    high = high if high > low else low + 1.0
    step = _step((high - low) / MOST_TICKS)
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(i * step, 12) for i in range(first, last + 1)]
    return Axis(label, low, high, tuple((value, show(value)) for value in values))


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def logarithmic(label: str, low: float, high: float, show: Callable[[float], str] = plain) -> Axis:
    """Both ends above zero. Ticks at decades, or at 1, 2 and 5 where there are few of them."""
    high = max(high, low * 1.01)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for factors, enough in (((1,), 3), ((1, 3), 3), ((1, 2, 5), 2), (range(1, 10), 2)):
        values = [factor * 10.0**power for power in decades for factor in factors]
        found = [float(f"{value:.6g}") for value in values if low <= value <= high]
        if len(found) >= enough:
            break
    if len(found) < 2:  # a small part of a decade
        even = linear(label, low, high, show)
        return Axis(label, low, high, even.ticks, is_log=True)
    skip = math.ceil(len(found) / (MOST_TICKS + 1))
    return Axis(label, low, high, tuple((v, show(v)) for v in found[::skip]), is_log=True)


def rows(names: Sequence[str], margin: float = 0.6) -> Axis:
    """An axis of named rows, the first at the top."""
    last = len(names) - 1
    ticks = tuple((float(last - i), name) for i, name in enumerate(names))
    return Axis("", -margin, last + margin, ticks)
