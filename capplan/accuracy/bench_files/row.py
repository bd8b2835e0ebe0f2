"""One benchmark result in the columns of the schema of measured runs, whatever tool wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class ResultRow:
    """What a file says of one run. Columns as in docs/accuracy.md; what it leaves out is absent.

    ``notes`` say which figures were set aside, and what looks odd.
    """

    file: Path
    place: str  # within the file: "line 3", "benchmark 2"; empty for the only one
    tool: str
    cells: Mapping[str, Cell]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.file.name} {self.place}".strip()


@dataclass(frozen=True, slots=True)
class SkippedResult:
    """A result that cannot be used, and why."""

    file: Path
    place: str
    reason: str

    @property
    def name(self) -> str:
        return f"{self.file.name} {self.place}".strip()


@dataclass(slots=True)
class Draft:
    """A row in the making: readers fill it, `sanity` looks at it as a whole."""

    tool: str
    place: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    completed: int | None = None
    num_failed: int = 0
    duration_s: float | None = None
    refusal: str | None = None  # why it cannot be used, where the reader knows already

    def put(self, column: str, value: object) -> None:
        """Keep a value that is there: neither None nor an empty text, nor a figure of zero."""
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, str):
            if value.strip():
                self.cells[column] = value.strip()
        elif isinstance(value, (int, float)) and value == value and value > 0:
            self.cells[column] = value

    def number(self, column: str) -> float | None:
        value = self.cells.get(column)
        return float(value) if isinstance(value, (int, float)) else None

    def drop(self, columns: tuple[str, ...], why: str) -> None:
        """Set figures aside, and say so once."""
        present = [name for name in columns if name in self.cells]
        for name in present:
            del self.cells[name]
        if present:
            self.notes.append(f"{', '.join(present)} set aside: {why}")
