"""What a command shows: a headline, tables, the assumptions, and what to do next.

A screen is data. `terminal` draws it for people, `tsv` writes its tables for programs; cells
keep their raw values in base units until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from capplan.results.assumptions import Assumption

# Plain text is shown as it is; a missing value as a dash.
Show = Callable[[Any], str]


def plain(value: Any) -> str:
    return str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` is the machine's name with its unit; ``heading`` the reader's, unit below.

    ``prose`` may be wrapped; everything else stays whole.
    """

    key: str
    heading: str
    show: Show = plain
    right: bool = True
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str | None = None
    in_tsv: bool = True  # False: prose for people, whose figures stand in another table


@dataclass(frozen=True, slots=True)
class Screen:
    headline: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()  # sentences under the tables
    plot: Callable[[int], str] | None = None  # given the width; only drawn for people
    assumptions: Sequence[Assumption] = ()
    next_commands: Sequence[str] = ()
    tsv: Table | None = None  # one table for programs instead of the people's ones

    @property
    def tsv_tables(self) -> list[Table]:
        return [self.tsv] if self.tsv else [table for table in self.tables if table.in_tsv]


def assumption_table(assumptions: Iterable[Assumption]) -> Table:
    columns = (
        Column("what", "", right=False, prose=True),
        Column("value", "", right=False, prose=True),
        Column("option", "change with", right=False),
    )
    rows = [(a.what, a.value, a.option) for a in assumptions]
    return Table("Assumed", columns, rows, in_tsv=False)
