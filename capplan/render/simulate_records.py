"""Every request of a simulation as a file: CSV or JSON lines, by its ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from capplan.render.new_file import writing
from capplan.results.simulate import RequestRow

SUFFIXES = (".csv", ".jsonl")


def write(rows: Iterable[RequestRow], path: Path) -> None:
    """One line a request; CapplanError where that cannot be."""
    with writing(path) as stream:
        if path.suffix.lower() == ".csv":
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(RequestRow._fields)
            writer.writerows([_cell(value) for value in row] for row in rows)
            return
        for row in rows:
            content = {name: _rounded(value) for name, value in row._asdict().items()}
            stream.write(json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else _rounded(value)


def _rounded(value: object) -> object:
    """A platform's last bit must not change the bytes of a file."""
    return float(f"{value:.12g}") if isinstance(value, float) else value
