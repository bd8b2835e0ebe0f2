"""The nearest feasible question, simulated: which limit to move, and to what."""

from __future__ import annotations

from collections.abc import Sequence

from capplan import units
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.grid import highest, rate_at
from capplan.planner.sizing.sample import Judged, judge
from capplan.planner.sizing.search import Search
from capplan.planner.sizing.sustained import replicas_at
from capplan.planner.suggestions import round_up
from capplan.results.gpus import Suggestion

# Of what a replica carries without limits: light enough for nobody to wait for somebody else.
_LIGHT_LOAD = 0.05


def nearest(candidates: Sequence[Candidate], aims: Search) -> tuple[Suggestion, ...]:
    """For the kind that misses by the smallest factor; every value was reached in a simulation."""
    tried = [
        (judged, place, one)
        for one in candidates
        if (judged := _at(place := _light_place(one), one, aims))
    ]
    if not tried:
        return ()
    judged, place, best = min(tried, key=lambda each: _miss(each[0]))
    plan = _plan(best, rate_at(place), aims.demand.peak_per_s)
    found = []
    for level in judged.levels:
        if level.value_s is None or level.holds:
            continue
        shown = units.format_duration(level.value_s, digits=3)
        reached = units.format_duration(round_up(level.value_s))
        times = f"{level.used_fraction:.3g} times the limit"
        why = f"{plan} reach P{level.percentile:g} {shown}: {times}"
        found.append(Suggestion(f"--slo-{level.key}", reached, why))
    return tuple(found)


def _plan(candidate: Candidate, each_per_s: float, need_per_s: float) -> str:
    """The fleet whose replicas carry so little."""
    num = replicas_at(need_per_s, each_per_s)
    gpus = num * candidate.gpus_per_replica
    rate = units.format_rate(each_per_s, digits=3)
    return f"{gpus:,} GPUs (TP {candidate.serving.deployment.tp}, {rate} a replica)"


def _light_place(candidate: Candidate) -> int:
    most = candidate.saturation_per_s * _LIGHT_LOAD
    return max(1, highest(lambda place: rate_at(place) <= most))


def _at(place: int, candidate: Candidate, aims: Search) -> Judged | None:
    sample = aims.curve(candidate).probe.sample(place, 1, longer=False)
    judged = judge(sample, aims.promise, aims.demand.kinds, by_interval=False)
    return None if sample.saturated else judged


def _miss(judged: Judged) -> float:
    return max(level.used_fraction for level in judged.levels)
