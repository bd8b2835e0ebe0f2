"""A screen for programs: its tables, tab-separated, raw values in base units, nothing cut."""

from __future__ import annotations

from typing import Any, TextIO

from capplan.render.screen import Screen, Table


def write(screen: Screen, stream: TextIO) -> None:
    """Write every table; several are parted by an empty line and a `# title`."""
    tables = screen.tsv_tables
    for i, table in enumerate(tables):
        if len(tables) > 1:
            stream.write(f"{chr(10) if i else ''}# {table.title}\n")
        _write_table(table, stream)


def _write_table(table: Table, stream: TextIO) -> None:
    stream.write("\t".join(column.key for column in table.columns) + "\n")
    for row in table.rows:
        stream.write("\t".join(_cell(value) for value in row) + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(round(value, 12)) if value != int(value) else str(int(value))
    return str(value).replace("\t", " ").replace("\n", " ")
