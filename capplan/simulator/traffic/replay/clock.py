"""The time of a row: a number in some unit, or the time of a clock on the wall."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date

from capplan.simulator.traffic.replay.rows import RowError, quoted

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
MAX_TIME_S = 1e12
_WALL = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d(?:\.\d{1,12})?) ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?"
)

_MINUTE = len("2023-11-16 18:17:")
_UTC = (None, "Z", "UTC", "+00:00")


def is_wall_clock(value: object) -> bool:
    """Whether a time looks like `2024-05-10 00:00:00.009930+00:00`."""
    return isinstance(value, str) and _WALL.fullmatch(value.strip()) is not None


def number_reader(field: str, unit: str) -> Callable[[object], float]:
    """Reads a number of `unit` as seconds; raises RowError."""
    per_s = UNITS[unit]

    def read(value: object) -> float:
        try:
            if isinstance(value, bool):
                raise TypeError
            time_s = float(value) / per_s  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            if value is None or value == "":
                raise RowError("without a value", f"`{field}` is empty") from None
            raise RowError("not a number", f"`{field}` is {quoted(value)}, not a number") from None
        if 0 <= time_s <= MAX_TIME_S:
            return time_s
        problem = "negative" if time_s < 0 else "not a time"
        reason = "not a number" if math.isnan(time_s) else "time out of range"
        raise RowError(reason, f"`{field}` is {quoted(value)}: {problem}")

    return read


def wall_clock_reader(field: str) -> Callable[[object], float]:
    """Reads wall-clock times as seconds since the first one's midnight, any number of digits kept.

    Times without a zone are taken as UTC. Raises RowError.
    """
    minutes: dict[str, float] = {}  # seconds of the minutes that were met lately
    first_day: list[int] = []

    def read(value: object) -> float:
        if isinstance(value, str):
            minute_s = minutes.get(value[:_MINUTE])
            seconds = value[_MINUTE:].removesuffix("+00:00")
            if minute_s is not None and seconds.replace(".", "", 1).isdecimal():
                return minute_s + _seconds(seconds, field, value)
        return read_whole(value)

    def read_whole(value: object) -> float:
        match = _WALL.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            message = f"`{field}` is {quoted(value)}, not a time like 2023-11-16 18:17:03.97"
            raise RowError("not a time", message)
        day, hours, minutes_of_hour, seconds, zone = match.groups()
        try:
            ordinal = date.fromisoformat(day).toordinal()
        except ValueError:
            raise RowError("not a time", f"`{field}` is {quoted(value)}: no such day") from None
        if int(hours) > 23 or int(minutes_of_hour) > 59:
            raise RowError("not a time", f"`{field}` is {quoted(value)}: no such time of day")
        if not first_day:
            first_day.append(ordinal)
        minute = int(hours) * 60 + int(minutes_of_hour) - _offset_minutes(zone)
        minute_s = (ordinal - first_day[0]) * 86_400.0 + minute * 60
        if zone in _UTC:
            if len(minutes) > 10_000:
                minutes.clear()
            minutes[str(value)[:_MINUTE]] = minute_s
        return minute_s + _seconds(seconds, field, value)

    return read


def _seconds(text: str, field: str, value: object) -> float:
    seconds = float(text)
    if seconds >= 61:  # a leap second is one
        raise RowError("not a time", f"`{field}` is {quoted(value)}: no such time of day")
    return seconds


def _offset_minutes(zone: str | None) -> int:
    if zone is None or zone in _UTC:
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return -minutes if zone[0] == "-" else minutes
