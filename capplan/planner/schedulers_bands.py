"""Error bands of schedulers side by side: those of the engine whose step times all of them take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.performance.bands import LOADED_FRACTION, BandKey
from capplan.planner.bands import latency_band, throughput_band
from capplan.planner.serving import Serving
from capplan.planner.simulated_bands import (
    Flow,
    held_requests,
    key_of,
    requests_per_s_when_full,
)
from capplan.results.bands import BandedFigure
from capplan.results.schedulers import SchedulerRow, SchedulersResult
from capplan.simulator.traffic.traffic import Traffic

# A scheduler that makes so much less than the best one is full, whatever the engine's own carries.
_BEHIND = 0.9


def with_bands(result: SchedulersResult, serving: Serving, traffic: Traffic) -> SchedulersResult:
    """Each row with the bands of a server that is as full as its own."""
    most = max((row.output_tokens_per_s for row in result.rows), default=0.0)
    used = _utilisation(serving, traffic)
    rows = []
    for row in result.rows:
        behind = row.output_tokens_per_s < _BEHIND * most
        share = max(used, 1.0) if behind else used
        key = key_of(serving, share)
        # A closed loop, and a server that is behind, go as fast as they can.
        is_held = traffic.closed_loop is None and share < LOADED_FRACTION
        bands = tuple(_of_row(row, key, share if is_held else None))
        rows.append(replace(row, bands=bands))
    return replace(result, rows=tuple(rows))


def _of_row(row: SchedulerRow, key: BandKey, fullness: float | None) -> Iterator[BandedFigure]:
    if row.output_tokens_per_s:
        yield throughput_band(row.output_tokens_per_s, fullness, key)
    for figure, statistic, percentile, value in (
        ("ttft", "mean", 0.0, row.ttft_mean_s),
        ("ttft", "P50", 50.0, row.ttft_p50_s),
        ("ttft", "P99", 99.0, row.ttft_p99_s),
        ("ttft", "max", 100.0, row.ttft_max_s),
        ("ttft", "longest_prompt", 0.0, row.longest_prompt_ttft_s),
        ("itl", "P50", 50.0, row.itl_p50_s),
        ("itl", "P99", 99.0, row.itl_p99_s),
        ("itl", "longest_gap", 100.0, row.longest_gap_s),
    ):
        if value is not None:
            yield latency_band(figure, statistic, percentile, value, None, key)


def _utilisation(serving: Serving, traffic: Traffic) -> float:
    flow = Flow(traffic.mean_prompt_tokens, traffic.mean_output_tokens)
    if traffic.closed_loop is not None:
        return traffic.closed_loop.num_users / held_requests(serving, flow)
    if traffic.rate_per_s is None:
        return 1.0  # all at once, or recorded: nobody says that it is far from full
    return traffic.rate_per_s / requests_per_s_when_full(serving, flow)
