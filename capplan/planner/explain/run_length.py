"""How long the simulated runs of an answer are: as they were asked for, not worked out again."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain.figure import figure
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.grid import place_from
from capplan.planner.sizing.probe import (
    LEAST_SAMPLES,
    LONGER,
    MAX_REQUESTS,
    MORE_THAN_NEEDED,
    START_REQUESTS,
)
from capplan.planner.sizing.run_length import LEAST_TIMES, WARMUP_TIMES, RunLength
from capplan.planner.sizing.search import Search
from capplan.results.explanation import Figure, Symbol
from capplan.results.sizing import SizedPoint, Sustained

_PLANNER = "docs/planner.md"


def point_figures(
    candidate: Candidate, aims: Search, sustained: Sustained, here: SizedPoint
) -> Iterator[Figure]:
    """How long one simulated point is: that of the sustained rate."""
    probe, bursts = aims.curve(candidate).probe, aims.demand.least_requests
    symbols = [
        Symbol("least", "of any point", LEAST_SAMPLES, ""),
        Symbol("samples", "with which ten lie beyond the percentile", aims.num_samples, ""),
        Symbol("more", "to be on the safe side", MORE_THAN_NEEDED, ""),
    ]
    if bursts:
        symbols.append(Symbol("bursts", "until each class has come in ten bursts", bursts, ""))
    yield figure(
        "requests that count at a point",
        probe.num_counted,
        "",
        f"counted = max(least, ceil(samples × more){', bursts' if bursts else ''})",
        symbols,
        why="A percentile with few requests beyond it is luck.",
        picture="Enough voters for a poll of the slowest hundredth.",
        check="Every rate is asked with the same random numbers, so that rates differ by their "
        "load alone.",
        source=_PLANNER,
    )
    place, group = place_from(here.requests_per_s), here.num_replicas
    length = probe.length(place, group, longer=here.was_longer)
    longer = f", {LONGER} times as many: the interval left it open" if here.was_longer else ""
    yield figure(
        "requests simulated at the sustained rate",
        here.num_requests,
        "",
        "requests = min(most, max(before + counted, lasting))",
        [
            Symbol("most", "of any point", MAX_REQUESTS, ""),
            *run_symbols(
                length, f"as above{longer}", f" and {START_REQUESTS} of each of {group} replicas"
            ),
        ],
        why="A run that ends before it has settled flatters.",
        picture="A shop is judged when it has been open for a while.",
        check=f"All {sustained.num_points} points together: {sustained.num_requests:,} requests.",
        source=_PLANNER,
    )


def run_symbols(length: RunLength, counted: str, start: str = "") -> list[Symbol]:
    """What the length of a simulated run is made of; the words say which requests count."""
    stays = f"of the {length.in_flight:.4g} in flight"
    return [
        Symbol("before", f"{WARMUP_TIMES:g} stays {stays}{start}, before any count",
               length.before, ""),
        Symbol("counted", counted, length.counted, ""),
        Symbol("lasting", f"that come in {LEAST_TIMES:g} stays {stays}", length.lasting, ""),
    ]  # fmt: skip
