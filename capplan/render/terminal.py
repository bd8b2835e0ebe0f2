"""A screen for people: rich tables with light rules, nothing ever cut off."""

from __future__ import annotations

import io
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from capplan.render.screen import Screen, Table, assumption_table

MIN_WIDTH = 40


def draw(screen: Screen, stream: TextIO, width: int, *, colour: bool) -> None:
    """Write the screen, `width` columns wide."""
    drawn = io.StringIO()
    console = Console(
        file=drawn,
        width=max(width, MIN_WIDTH),
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
    )
    console.print(Text(screen.headline, style="bold"))
    for table in screen.tables:
        _draw_table(console, table)
    plot = screen.plot(console.width) if screen.plot else ""
    if plot:
        console.print()
        # Already laid out for the width; wrapping would tear it.
        console.out(plot, highlight=False)
    for note in screen.notes:
        console.print()
        console.print(Text(note))
    if screen.assumptions:
        _draw_table(console, assumption_table(screen.assumptions))
    if screen.next_commands:
        console.print()
        console.print(Text("Next", style="bold"))
        for command in screen.next_commands:
            console.print(Text(f"  {command}"))
    # rich pads every cell; nobody wants to paste trailing blanks.
    stream.writelines(line.rstrip() + "\n" for line in drawn.getvalue().splitlines())


def _draw_table(console: Console, table: Table) -> None:
    console.print()
    console.print(Text(table.title, style="bold"))
    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        show_header=any(column.heading for column in table.columns),
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
        show_edge=False,
    )
    rows = [
        [
            "-" if value is None else column.show(value)
            for column, value in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]
    for i, column in enumerate(table.columns):
        widest = max((cell_len(row[i]) for row in rows), default=0)
        drawn.add_column(
            Text(column.heading),
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.prose,
            # rich takes the longest word for the least width, and would cut `1.35 TiB`.
            min_width=None if column.prose else widest,
            vertical="top",
        )
    for row in rows:
        drawn.add_row(*map(_cell, row))
    # Too narrow a terminal breaks lines; cutting a number off would be worse.
    needed = drawn.__rich_measure__(console, console.options.update(max_width=500)).minimum
    console.print(drawn, width=max(needed, console.width), crop=False, no_wrap=False)
    if table.note:
        console.print(Text(table.note, style="dim"))


def _cell(text: str) -> Text:
    """Colour repeats what the mark says; it never carries meaning alone."""
    style = {"✓": "green", "✗": "red"}.get(text[:1], "")
    return Text(text, style=style)
