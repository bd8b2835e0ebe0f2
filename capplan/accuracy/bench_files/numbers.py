"""Numbers as benchmark tools write them: as text, as "inf", as NaN, under several names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def number_of(value: object) -> float | None:
    """A finite number, also from text; None for anything else.

    >>> number_of("4"), number_of("inf"), number_of(None), number_of(True)
    (4.0, None, None, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float, str)):
        try:
            read = float(value)
        except ValueError:
            return None
        return read if math.isfinite(read) else None
    return None


def count_of(value: object) -> int | None:
    """A whole number of at least 1, or None.

    >>> count_of("8"), count_of(2.5), count_of(0)
    (8, None, None)
    """
    read = number_of(value)
    return int(read) if read is not None and read >= 1 and read == int(read) else None


def is_unlimited(value: object) -> bool:
    """A request rate of "inf", or the number.

    >>> is_unlimited("inf"), is_unlimited(float("inf")), is_unlimited(4.0)
    (True, True, False)
    """
    if isinstance(value, str):
        return value.strip().lower() in ("inf", "infinity")
    return isinstance(value, float) and math.isinf(value)


def first_of(source: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first value that is there and not null."""
    for name in names:
        value = source.get(name)
        if value is not None:
            return value
    return None


def at(source: object, *path: str) -> Any:
    """A value deep inside nested objects; None where any of them is missing."""
    for name in path:
        if not isinstance(source, Mapping):
            return None
        source = source.get(name)
    return source
