"""What each replica of a fleet did, over whole runs."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.results.simulate import ReplicaLoad
from capplan.simulator.fleet.records import FleetOutcome, ReplicaOutcome


def replica_loads(outcome: FleetOutcome) -> tuple[ReplicaLoad, ...]:
    """One run. Of one that was interrupted only the answers are known."""
    return tuple(_load(index, replica, outcome) for index, replica in enumerate(outcome.replicas))


def _load(index: int, replica: ReplicaOutcome, outcome: FleetOutcome) -> ReplicaLoad:
    lives, end_s = replica.lives, outcome.end_s
    records = [record for record in replica.records if record.id not in outcome.unwanted]
    prompt_tokens = sum(record.prompt_tokens for record in records)
    hits = sum(record.cached_tokens for record in records)
    busy_s = sum(life.busy_s for life in lives)
    return ReplicaLoad(
        index=index,
        num_sent=replica.num_sent,
        num_answered=len(records),
        num_failures=max(0, len(lives) - 1),
        busy_fraction=min(1.0, busy_s / end_s) if end_s else 0.0,
        max_running=max((life.max_running for life in lives), default=0),
        prefix_hit_fraction=hits / prompt_tokens if prompt_tokens else None,
        num_preemptions=sum(life.num_preemptions for life in lives),
        scheduled_tokens=sum(life.scheduled_tokens for life in lives),
    )


def together(runs: Sequence[Sequence[ReplicaLoad]]) -> tuple[ReplicaLoad, ...]:
    """Over replications: counts are summed, shares are means."""
    return tuple(_sum(loads) for loads in zip(*runs, strict=True))


def _sum(loads: Sequence[ReplicaLoad]) -> ReplicaLoad:
    hits = [load.prefix_hit_fraction for load in loads if load.prefix_hit_fraction is not None]
    return ReplicaLoad(
        index=loads[0].index,
        num_sent=sum(load.num_sent for load in loads),
        num_answered=sum(load.num_answered for load in loads),
        num_failures=sum(load.num_failures for load in loads),
        busy_fraction=sum(load.busy_fraction for load in loads) / len(loads),
        max_running=max(load.max_running for load in loads),
        prefix_hit_fraction=sum(hits) / len(hits) if hits else None,
        num_preemptions=sum(load.num_preemptions for load in loads),
        scheduled_tokens=sum(load.scheduled_tokens for load in loads),
    )
