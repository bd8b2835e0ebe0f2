"""The nearest feasible question, simulated: which limit to move, and to what."""

from __future__ import annotations

from collections.abc import Sequence

from capplan import units
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.grid import NUM_RATES, rate_at
from capplan.planner.sizing.sample import Judged, judge
from capplan.planner.sizing.search import Search
from capplan.planner.suggestions import round_up
from capplan.results.gpus import Suggestion

# Of what a replica carries without limits: light enough for nobody to wait for somebody else.
_LIGHT_LOAD = 0.05


def nearest(candidates: Sequence[Candidate], aims: Search) -> tuple[Suggestion, ...]:
    """For the kind that misses by the smallest factor; every value was reached in a simulation."""
    tried = [(judged, one) for one in candidates if (judged := _lightly_loaded(one, aims))]
    if not tried:
        return ()
    judged, best = min(tried, key=lambda pair: _miss(pair[0]))
    found = []
    for level in judged.levels:
        if level.value_s is None or level.holds:
            continue
        shown = units.format_duration(level.value_s, digits=3)
        reached = units.format_duration(round_up(level.value_s))
        deployment = best.serving.deployment
        why = f"TP {deployment.tp} reaches {shown} at P{level.percentile:g} under light load"
        found.append(Suggestion(f"--slo-{level.key}", reached, why))
    return tuple(found)


def _lightly_loaded(candidate: Candidate, aims: Search) -> Judged | None:
    place = 1
    while place < NUM_RATES - 1 and rate_at(place + 1) <= candidate.saturation_per_s * _LIGHT_LOAD:
        place += 1
    sample = aims.curve(candidate).probe.sample(place, 1, longer=False)
    judged = judge(sample, aims.promise, aims.demand.kinds, by_interval=False)
    return None if sample.saturated else judged


def _miss(judged: Judged) -> float:
    return max(level.used_fraction for level in judged.levels)
