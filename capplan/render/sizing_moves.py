"""How the count moves: when the world is otherwise, and as the traffic grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capplan.render import shows
from capplan.render.bands import count_range
from capplan.render.screen import Column, Table
from capplan.results.gpus import GpusResult

if TYPE_CHECKING:  # bounds do not simulate
    from capplan.results.sizing import Sizing

BAR = 6  # columns of a bar, each way


def robustness_table(result: GpusResult) -> Table:
    """The count today, and when one thing is otherwise."""
    sizing = result.sizing
    assert sizing is not None
    base = result.num_gpus or 0
    columns = (
        Column("what", "if", right=False, prose=True),
        Column("value", "is", right=False),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("more", "against\ntoday", _signed),
        Column("num_gpus_rounded", "to buy", shows.count),
        Column("bar", "", right=False),
    )
    most = max((abs(v.num_gpus - base) for v in sizing.variations if v.num_gpus), default=0)
    swings: dict[str, int] = {}
    for each in sizing.variations:
        moved = most + 1 if each.num_gpus is None else abs(each.num_gpus - base)
        swings[each.what] = max(swings.get(each.what, 0), moved)
    rows = [
        (
            each.what,
            each.value,
            each.num_gpus,
            each.num_gpus_band,
            None if each.num_gpus is None else each.num_gpus - base,
            each.num_gpus_rounded,
            _bar(each.num_gpus, base, most),
        )
        for each in sorted(sizing.variations, key=lambda each: -swings[each.what])
    ]
    return Table("How the count moves, largest first", columns, rows, in_tsv=False)


def _signed(value: int) -> str:
    return f"{value:+,}" if value else "0"


def _bar(num_gpus: int | None, base: int, most: int) -> str:
    """A tornado: fewer to the left of the line, more to the right."""
    if num_gpus is None:
        return "no number is enough"
    moved = num_gpus - base
    length = round(BAR * abs(moved) / most) if most else 0
    length = max(length, 1) if moved else 0
    left = "█" * length if moved < 0 else ""
    right = "█" * length if moved > 0 else ""
    return f"{left:>{BAR}}│{right}"


def months_table(sizing: Sizing) -> Table:
    columns = (
        Column("month", "month", lambda month: f"+{month}" if month else "today"),
        Column("arrival_rate_per_s", "traffic", shows.rate),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("num_gpus_rounded", "to buy", shows.count),
        Column("usd_per_hour", "$/hour", shows.money),
    )
    rows = [
        (
            month.month,
            month.arrival_rate_per_s,
            month.num_gpus,
            month.num_gpus_band,
            month.num_gpus_rounded,
            month.usd_per_hour,
        )
        for month in sizing.months
    ]
    return Table("As the traffic grows", columns, rows, in_tsv=False)
