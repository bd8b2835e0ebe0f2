"""A screen's table as texts, for every form of the document."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from capplan.render.screen import Table

_TONES = {"✓": "good", "✗": "bad", "?": "open"}


@dataclass(frozen=True, slots=True)
class Head:
    text: str
    right: bool
    prose: bool


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    tone: str  # good | bad | open | plain: what its mark says already


@dataclass(frozen=True, slots=True)
class Texts:
    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    note: str | None


def texts_of(table: Table, without: Collection[str] = ()) -> Texts:
    """Every cell as it is shown; ``without`` are keys of columns that only a terminal needs."""
    kept = [i for i, column in enumerate(table.columns) if column.key not in without]
    columns = [table.columns[i] for i in kept]
    return Texts(
        table.title,
        [Head(" ".join(c.heading.split()), c.right, c.prose) for c in columns],
        [
            [_cell("–" if row[i] is None else table.columns[i].show(row[i])) for i in kept]
            for row in table.rows
        ],
        table.note,
    )


def _cell(text: str) -> Cell:
    return Cell(text, _TONES.get(text[:1], "plain"))
