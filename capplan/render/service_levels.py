"""Limits and what was simulated: the table of them, and those that a band leaves open."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.bands import band_text, coverage, find_band, inside_note
from capplan.render.screen import Column, Table
from capplan.results.bands import BandedFigure
from capplan.results.simulate import ServiceLevel, SimulateResult

_MARKS = {True: "✓ met", False: "✗ missed", None: "? open"}


def levels_table(result: SimulateResult) -> Table:
    """Each limit with what was simulated, and its band where there is a value."""
    bands = [_band(level, result) for level in result.service_levels]
    banded = any(bands)
    columns = (
        Column("met", "", right=False),
        Column("name", "", right=False),
        Column("value_s", "simulated", right=True, prose=True),
        *([Column("band", f"{coverage(result.bands)} band")] if banded else []),
        Column("limit_s", "limit", shows.duration),
        Column("headroom", "headroom"),
        Column("over_fraction", "requests\nabove", shows.share),
    )
    rows = [
        (
            _MARKS[level.met],
            f"{level.name} {percentile_name(level.percentile)}",
            shows.duration(level.value_s) if level.value_s is not None else (level.why or "-"),
            *([band_text(band) if band else None] if banded else []),
            level.limit_s,
            _headroom(level),
            level.over_fraction,
        )
        for level, band in zip(result.service_levels, bands, strict=True)
    ]
    return Table("Service levels", columns, rows, in_tsv=False)


def _band(level: ServiceLevel, result: SimulateResult) -> BandedFigure | None:
    return find_band(result.bands, level.key, percentile_name(level.percentile))


def _headroom(level: ServiceLevel) -> str | None:
    if level.value_s is None:
        return None
    left = 1 - level.value_s / level.limit_s
    return shows.share(left) if left >= 0 else f"{shows.number(level.value_s / level.limit_s)} x"


def percentile_name(percentile: float) -> str:
    return f"P{percentile:g}"


def inside_notes(result: SimulateResult) -> list[str]:
    """Limits that measured servers like this one would lie on either side of."""
    notes = []
    for level in result.service_levels:
        band = _band(level, result)
        note = None if band is None else inside_note(band, level.limit_s)
        notes += [note] if note else []
    return notes
