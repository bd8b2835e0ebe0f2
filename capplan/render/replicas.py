"""What each replica did, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.simulate import ReplicaLoad

MOST_ROWS = 16


def replica_table(loads: Sequence[ReplicaLoad]) -> Table:
    """Of a large fleet those that were sent the most and the fewest."""
    shown = sorted(loads, key=lambda load: (-load.num_sent, load.index))
    note = "Over the whole run, the warm-up included."
    if len(shown) > MOST_ROWS:
        half = MOST_ROWS // 2
        shown = [*shown[:half], *shown[-half:]]
        note += f" Of {len(loads)} replicas those that were sent the most and the fewest."
    else:
        shown = list(loads)
    columns = [
        Column("replica", "replica"),
        Column("num_sent", "attempts\nsent", shows.count),
        Column("num_answered", "answered", shows.count),
        Column("busy_fraction", "busy", shows.share),
        Column("max_running", "running\nat most", shows.count),
        Column("scheduled_tokens", "tokens\ncomputed", shows.count),
        Column("prefix_hit_fraction", "prefix\nhits", shows.share),
        Column("num_preemptions", "preemptions", shows.count),
    ]
    rows = [
        [
            f"{load.index}{' (failed)' if load.num_failures else ''}",
            load.num_sent,
            load.num_answered,
            load.busy_fraction,
            load.max_running,
            load.scheduled_tokens,
            load.prefix_hit_fraction,
            load.num_preemptions,
        ]
        for load in shown
    ]
    return Table("Replicas", columns, rows, note=note, in_tsv=False)
