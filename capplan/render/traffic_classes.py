"""The latencies of each class of the traffic, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capplan.render import shows
from capplan.render.band_shares import shares_note
from capplan.render.screen import Column, Table
from capplan.results.bands import BandedFigure
from capplan.results.simulate import ClassLatencies


def class_table(classes: Sequence[ClassLatencies], bands: Sequence[BandedFigure]) -> Table:
    """The median and the highest percentile of each."""
    percentiles = [p.percentile for p in classes[0].latencies[0].percentiles]
    shown = [percentiles[0], percentiles[-1]]
    columns = [Column("class", "", right=False), Column("num", "requests", shows.count)]
    columns += [
        Column(f"{latency.key}_p{p:g}", f"{latency.name}\nP{p:g}", shows.duration)
        for latency in classes[0].latencies
        for p in shown
    ]
    rows = [
        [
            one.name,
            one.num_measured,
            *(
                p.value_s
                for latency in one.latencies
                for p in latency.percentiles
                if p.percentile in shown
            ),
        ]
        for one in classes
    ]
    names = {f"P{p:g}" for p in shown}
    own = [
        (one.name, [_whole(b, one.name) for b in bands if b.statistic.endswith(f" of {one.name}")])
        for one in classes
    ]
    note = shares_note([(name, [b for b in found if b.statistic in names]) for name, found in own])
    return Table("By class", columns, rows, note=note, in_tsv=False)


def _whole(band: BandedFigure, name: str) -> BandedFigure:
    """`P99 of chat` as P99."""
    return replace(band, statistic=band.statistic.removesuffix(f" of {name}"))
