"""Request lengths from a file: one number a line, a column of a CSV file, or a histogram."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError, Location, QuantityError, did_you_mean, one_line
from capplan.specs.documents import read_json, read_text
from capplan.specs.lengths import MAX_LENGTHS, MAX_TOKENS, Empirical, Lengths, bounded
from capplan.units import parse_tokens

MAX_LENGTHS_BYTES = 64 * 2**20
_SHARE = re.compile(r"\b(\d{1,10}): *(\d+(?:\.\d+)?(?:e-?\d{1,3})?)")


@dataclass(frozen=True, slots=True)
class LengthFile:
    """``@lengths.txt``, ``@trace.csv:column``, ``@histogram.json`` or ServeGen's lengths.

    The last have histograms by time window, ``@chunk-0-dataset.json:input_tokens``; the windows
    count alike.
    """

    name: str
    column: str = ""

    @property
    def text(self) -> str:
        return f"@{self.name}:{self.column}" if self.column else f"@{self.name}"


def parse_length_file(text: str) -> LengthFile:
    """``text`` starts with `@`; the file is not opened.

    >>> parse_length_file("@trace.csv:input")
    LengthFile(name='trace.csv', column='input')
    """
    name, colon, column = text[1:].rpartition(":")
    if not colon or Path(text[1:]).suffix == ".txt":
        return LengthFile(text[1:])
    return LengthFile(name, column)


def read_length_file(file: LengthFile, folder: Path = Path()) -> Lengths:
    """The lengths in ``file``, a relative name counted from ``folder``. Raises CapplanError."""
    path = folder / file.name
    if path.suffix == ".json":
        return _histogram(file, path)
    content = read_text(path, what="a list of lengths", most=MAX_LENGTHS_BYTES)
    cells = _column(content, str(path), file.column) if file.column else _lines(content)
    lengths = tuple(_numbers(cells, str(path)))
    if not lengths:
        raise CapplanError(
            "the file holds no length",
            location=Location(str(path)),
            hint="one number a line, or a CSV file and its column: @lengths.csv:prompt",
        )
    return Lengths(file.text, Empirical(lengths))


def _histogram(file: LengthFile, path: Path) -> Lengths:
    """A mapping of lengths to weights: shares, or counts."""
    document = read_json(path)
    hint = 'write it like {"128": 0.25, "1024": 0.75}'
    data = _of_windows(document.data, file.column) if file.column else document.data
    if not isinstance(data, dict) or not data:
        raise CapplanError(
            "this is not a histogram of lengths", location=Location(str(path)), hint=hint
        )
    lengths, weights = [], []
    for key, weight in data.items():
        location = document.locate([key])
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise CapplanError(
                f"the weight of `{one_line(key, 40)}` is not a number", location=location, hint=hint
            )
        if not 0 <= weight <= 1e15 or not math.isfinite(weight):
            problem = f"the weight of `{one_line(key, 40)}` is out of range"
            raise CapplanError(problem, location=location, hint=hint)
        if weight:
            lengths.append(_length(key, location))
            weights.append(float(weight))
    if not lengths:
        raise CapplanError("all weights are zero", location=Location(str(path)), hint=hint)
    return bounded(Lengths(file.text, Empirical(tuple(lengths), tuple(weights))))


def _of_windows(data: Any, field: str) -> dict[str, float] | None:
    """The sum of the histograms that ServeGen keeps as texts, `{128: 0.25, 1024: 0.75}`."""
    total: dict[str, float] = {}
    for window in data.values() if isinstance(data, dict) else ():
        text = window.get(field) if isinstance(window, dict) else None
        for length, share in _SHARE.findall(text) if isinstance(text, str) else ():
            total[length] = total.get(length, 0.0) + float(share)
    return total or None


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
        yield _length(cell, location)


def _length(text: str, location: Location) -> int:
    try:
        length = parse_tokens(text, positive=True)
    except QuantityError as error:
        raise CapplanError(error.message, hint=error.hint, location=location) from None
    if length > MAX_TOKENS:
        raise CapplanError(f"a length is more than {MAX_TOKENS:,} tokens", location=location)
    return length
