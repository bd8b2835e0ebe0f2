"""The rows of a trace on the clock of a simulation: window, order, spread, speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import groupby
from random import Random

from capplan.errors import CapplanError, Location
from capplan.simulator.traffic.replay.rows import Row
from capplan.specs.traffic import Trace

SORT_ROWS = 200_000  # held back at most: 50 MB
TimedRow = tuple[float, Row]


def timed_rows(
    rows: Iterable[Row], trace: Trace, random: Random, file: str, skipped: Counter[str]
) -> Iterator[TimedRow]:
    """(seconds since the first row of the window, row), in order.

    Raises CapplanError at a row whose time runs backwards, or by too much to be put in order.
    """
    ordered = _sorted(rows, file) if trace.sort else _in_order(rows, trace, file, skipped)
    window = _window(ordered, trace.start, trace.end)
    spread = _spread(window, trace.spread, random) if trace.spread else window
    origin_s = None
    for time_s, row in spread:
        if origin_s is None:
            origin_s = time_s
        yield (time_s - origin_s) / trace.speed, row


def _in_order(
    rows: Iterable[Row], trace: Trace, file: str, skipped: Counter[str]
) -> Iterator[TimedRow]:
    last_s, last_line = float("-inf"), 0
    for row in rows:
        time_s = row.time_s or 0.0
        if time_s >= last_s:
            last_s, last_line = time_s, row.line
            yield time_s, row
        elif trace.skip_bad_rows:
            skipped["out of order"] += 1
        else:
            raise CapplanError(
                f"the time runs backwards: {last_s - time_s:g} s before line {last_line}",
                hint="sort the file, or say `trace: {sort: true}` in a plan",
                location=Location(file, row.line),
            )


def _sorted(rows: Iterable[Row], file: str) -> Iterator[TimedRow]:
    """In order of time, equal times in the order of the file."""
    waiting: list[tuple[float, int, Row]] = []
    last_s = float("-inf")

    def due() -> TimedRow:
        time_s, _, row = heappop(waiting)
        if time_s < last_s:
            raise CapplanError(
                f"the row is too late to be put in order: over {SORT_ROWS:,} rows",
                hint="sort the file by time first",
                location=Location(file, row.line),
            )
        return time_s, row

    for row in rows:
        heappush(waiting, (row.time_s or 0.0, row.line, row))
        if len(waiting) > SORT_ROWS:
            yield (found := due())
            last_s = found[0]
    while waiting:
        yield (found := due())
        last_s = found[0]


def _window(rows: Iterable[TimedRow], start_s: float, end_s: float | None) -> Iterator[TimedRow]:
    """Rows from `start_s` to `end_s` after the first one of the file."""
    first_s = None
    for time_s, row in rows:
        if first_s is None:
            first_s = time_s
        if end_s is not None and time_s - first_s >= end_s:
            return
        if time_s - first_s >= start_s:
            yield time_s, row


def _spread(rows: Iterable[TimedRow], tick_s: float, random: Random) -> Iterator[TimedRow]:
    """Rows that were recorded on one tick, at sorted uniform times until the next.

    A time belongs to the nearest tick: recorders write 2,999 ms as well as 3,000.
    """
    for tick, group in groupby(rows, key=lambda timed: round(timed[0] / tick_s)):
        together = [row for _, row in group]
        offsets = sorted(random.random() for _ in together)
        for offset, row in zip(offsets, together, strict=True):
            yield (tick + offset) * tick_s, row
