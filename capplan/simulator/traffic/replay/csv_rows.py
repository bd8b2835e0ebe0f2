"""Rows of a CSV file with a header."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from capplan.errors import CapplanError, Location
from capplan.simulator.traffic.replay.files import lines_of, opened
from capplan.simulator.traffic.replay.formats import Columns
from capplan.simulator.traffic.replay.rows import Row, RowError, quoted, tokens_of

DELIMITERS = ",;\t"


def header_of(line: str) -> tuple[list[str], str]:
    """The names in the first line, and what separates them.

    >>> header_of("a;b;c")
    (['a', 'b', 'c'], ';')
    """
    delimiter = max(DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def csv_rows(
    path: Path,
    columns: Columns,
    read_time: Callable[[object], float] | None,
    where: Mapping[str, str],
) -> Iterator[Row | RowError]:
    """Every row, good or bad, in the order of the file; empty lines are passed over."""
    with opened(path) as stream:
        lines = lines_of(stream)
        header, delimiter = header_of(next(lines)[1])
        places = [_place(header, n) for n in (columns.prompt, columns.output, columns.time)]
        prompt_at, output_at, time_at = places
        session_at = _place(header, columns.session)
        filters = [(header.index(name), value) for name, value in where.items()]
        needed = max(place for place in places if place is not None) + 1
        names = [columns.prompt or "", columns.output or "", columns.time or ""]
        for number, line, whole in lines:
            if not line.strip():
                continue
            try:
                row = _cells(line, delimiter, whole)
                if len(row) < needed:
                    raise _short(row, header, line)
                if any(at >= len(row) or row[at].strip() != value for at, value in filters):
                    continue
                yield Row(
                    number,
                    read_time(row[time_at]) if read_time and time_at is not None else None,
                    tokens_of(row[prompt_at], names[0]) if prompt_at is not None else 0,
                    tokens_of(row[output_at], names[1], output=True)
                    if output_at is not None
                    else 0,
                    session=(row[session_at] or None)
                    if session_at is not None and session_at < len(row)
                    else None,
                )
            except RowError as fault:
                yield fault.at(number)


def _place(header: list[str], name: str | None) -> int | None:
    return header.index(name) if name is not None else None


def _cells(line: str, delimiter: str, whole: bool) -> list[str]:
    if not whole:
        raise RowError("too long", "the row is too long")
    if '"' not in line:
        return line.rstrip("\r\n").split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise RowError("not valid CSV", f"this is not valid CSV: {error}") from None


def _short(row: list[str], header: list[str], line: str) -> RowError:
    cut = "" if line.endswith("\n") else "; it is the last one: the file was cut off"
    message = f"the row has {len(row)} of {len(header)} columns{cut}"
    return RowError("with too few columns", message)


def refuse_rates(header: list[str], path: Path) -> None:
    """A table of rates is no list of requests. Raises CapplanError."""
    if {"rate_rps", "window_start_s"} <= set(header):
        raise CapplanError(
            f"this is a table of rates ({quoted(header[0])}, ...), not of requests",
            location=Location(str(path), 1),
            hint="give it as `rate: {kind: servegen, file: ...}`",
        )
