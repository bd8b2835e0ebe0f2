"""What the search and the proof found, with the error bands of each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from capplan.performance.bands import BandKey, band_for
from capplan.planner.bands import gpus_band, latency_band
from capplan.planner.simulated_bands import key_of
from capplan.planner.sizing.candidates import Candidate
from capplan.results.bands import BandedFigure, Range
from capplan.results.sizing import Level, Sustained


def key_at(candidate: Candidate, requests_per_s: float) -> BandKey:
    """Of a replica that gets so much."""
    return key_of(candidate.serving, requests_per_s / candidate.saturation_per_s)


def throughput_range(candidate: Candidate, requests_per_s: float) -> Range:
    """Of what a replica carries at most."""
    return Range(*band_for("throughput", key_of(candidate.serving, 1.0)).around(requests_per_s))


def count_band(
    candidate: Candidate, num_gpus: int, rate_per_s: float, carried_per_s: float
) -> BandedFigure:
    """Of GPUs that a rate needs where a replica carries so much, as predicted.

    Where replicas were added, or more are there than the rate needs, the count is taken as needed.
    """
    size = candidate.gpus_per_replica
    carried = max(rate_per_s / (num_gpus / size), carried_per_s)
    return gpus_band(num_gpus, size, rate_per_s, carried, key_of(candidate.serving, 1.0))


def count_range(
    candidate: Candidate, num_gpus: int, rate_per_s: float, carried_per_s: float
) -> Range:
    """The same as two numbers."""
    band = count_band(candidate, num_gpus, rate_per_s, carried_per_s)
    return Range(band.low, band.high)


def banded_levels(
    levels: Sequence[Level], candidate: Candidate, requests_per_s: float
) -> tuple[Level, ...]:
    """Percentiles of requests at so many a second for each replica."""
    key = key_at(candidate, requests_per_s)
    ttft_s = first_token_s(levels)
    return tuple(
        level
        if level.value_s is None or not isfinite(level.value_s)
        else replace(
            level, band=latency_range(level.key, level.percentile, level.value_s, ttft_s, key)
        )
        for level in levels
    )


def banded_sustained(sustained: Sustained, candidate: Candidate) -> Sustained:
    """With the bands of the rate and of every percentile at it."""
    each = sustained.requests_per_s
    return replace(
        sustained,
        band=throughput_range(candidate, each),
        levels=banded_levels(sustained.levels, candidate, each),
    )


def latency_range(
    level_key: str, percentile: float, value_s: float, ttft_s: float | None, key: BandKey
) -> Range:
    """Of one figure at a percentile; ``ttft_s``: of a whole answer the part before the first."""
    band = latency_band(level_key, "", percentile, value_s, ttft_s, key)
    return Range(band.low, band.high)


def whole_range(
    levels: Sequence[Level], e2e_s: float, candidate: Candidate, requests_per_s: float
) -> Range:
    """Of whole answers at the highest percentile that is promised."""
    percentile = max((level.percentile for level in levels), default=99.0)
    key = key_at(candidate, requests_per_s)
    return latency_range("e2e", percentile, e2e_s, first_token_s(levels), key)


def first_token_s(levels: Sequence[Level]) -> float | None:
    """What the first limit on TTFT has reached; None without one."""
    return next((level.value_s for level in levels if level.key == "ttft"), None)
