"""The latencies of each class of the traffic, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.simulate import ClassLatencies


def class_table(classes: Sequence[ClassLatencies]) -> Table:
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
    return Table("By class", columns, rows, in_tsv=False)
