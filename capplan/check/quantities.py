"""Sizes and numbers as Kubernetes and compose write them."""

from __future__ import annotations

import re

from capplan import units
from capplan.errors import QuantityError

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]{0,3})\s*")
# Kubernetes: `G` is 10^9 and `Gi` 2^30; compose: `g` and `gb` are 2^30.
_COMPOSE = {
    "": "B",
    "b": "B",
    "k": "KiB",
    "kb": "KiB",
    "m": "MiB",
    "mb": "MiB",
    "g": "GiB",
    "gb": "GiB",
}


def size_of(text: str | None, *, compose: bool = False) -> float | None:
    """Bytes, or None where the text is no size.

    >>> size_of("16Gi"), size_of("120G"), size_of("16gb", compose=True)
    (17179869184.0, 120000000000.0, 17179869184.0)
    >>> size_of("4096"), size_of("lots")
    (4096.0, None)
    """
    match = _SIZE.fullmatch(text or "")
    if match is None:
        return None
    unit = match[2]
    name = _COMPOSE.get(unit.lower(), unit) if compose else f"{unit or ''}B".replace("kB", "KB")
    name = name if name.endswith("B") else f"{name}B"
    try:
        return float(units.parse_bytes(f"{match[1]}{name}"))
    except QuantityError:
        return None


def number_of(text: str | None, default: float) -> float | None:
    """The number of a text; the default where nothing stands there, None where it is no number."""
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
