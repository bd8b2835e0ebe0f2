"""Request lengths from a file: one number a line, or a column of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from capplan.errors import CapplanError, Location, QuantityError, did_you_mean
from capplan.planner.lengths import MAX_LENGTHS, MAX_TOKENS, parse_lengths
from capplan.specs.documents import read_text
from capplan.units import parse_tokens

MAX_LENGTHS_BYTES = 64 * 2**20


def read_lengths(text: str) -> tuple[int, ...]:
    """``@lengths.txt``, ``@trace.csv:column``, or what `parse_lengths` knows."""
    if not text.startswith("@"):
        return parse_lengths(text)
    name, colon, column = text[1:].rpartition(":")
    if not colon or Path(text[1:]).suffix == ".txt":
        name, column = text[1:], ""
    content = read_text(Path(name), what="a list of lengths", most=MAX_LENGTHS_BYTES)
    cells = _column(content, name, column) if column else _lines(content)
    lengths = tuple(_numbers(cells, name))
    if not lengths:
        raise CapplanError("the file holds no length", location=Location(name))
    return lengths


def _lines(content: str) -> Iterator[tuple[int, str]]:
    """Empty lines and comments are passed over."""
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _column(content: str, name: str, column: str) -> Iterator[tuple[int, str]]:
    rows = csv.reader(io.StringIO(content))
    try:
        head = [cell.strip() for cell in next(rows, [])]
        if column not in head:
            hint = did_you_mean(column[:40], head) or f"its columns: {', '.join(head[:20])}"
            raise CapplanError(
                f"there is no column `{column[:40]}`", location=Location(name, 1), hint=hint
            )
        place = head.index(column)
        for row in rows:
            if row:
                yield rows.line_num, row[place].strip() if place < len(row) else ""
    except csv.Error as error:
        raise CapplanError(
            f"this is not valid CSV: {error}", location=Location(name, rows.line_num)
        ) from None


def _numbers(cells: Iterable[tuple[int, str]], name: str) -> Iterator[int]:
    for count, (number, cell) in enumerate(cells, 1):
        location = Location(name, number)
        if count > MAX_LENGTHS:
            raise CapplanError(f"more than {MAX_LENGTHS:,} lengths", location=location)
        try:
            length = parse_tokens(cell, positive=True)
        except QuantityError as error:
            raise CapplanError(error.message, hint=error.hint, location=location) from None
        if length > MAX_TOKENS:
            raise CapplanError(f"a length is more than {MAX_TOKENS:,} tokens", location=location)
        yield length
