"""The answer of `capplan simulate` for programs: one row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from capplan.render.band_columns import with_ends
from capplan.render.bands import SECOND_HALF, THROUGHPUT, find_band
from capplan.render.screen import Column, Table
from capplan.results.bands import BandedFigure
from capplan.results.simulate import SimulateInputs, SimulateResult


def for_programs(result: SimulateResult, inputs: SimulateInputs) -> Table:
    """One row a simulation, so that a loop in a shell makes a table."""
    usage, state = result.usage, result.saturation
    row: dict[str, Any] = {
        "verdict": result.verdict,
        "num_gpus": result.num_gpus,
        "num_replicas": inputs.num_replicas,
        "tp": inputs.tp,
        "max_num_seqs": inputs.max_num_seqs,
        "max_num_batched_tokens": inputs.max_num_batched_tokens,
        "arrival_rate_per_s": inputs.arrival_rate_per_s,
        "seed": inputs.seed,
        "num_requests": result.num_requests,
        "num_measured": result.num_measured,
        "saturated": state.saturated,
        "offered_per_s": state.offered_per_s,
        "served_per_s": state.served_per_s,
        "goodput_per_s": result.goodput.goodput_per_s if result.goodput else None,
        "requests_per_s": result.requests_per_s,
        "output_tokens_per_s": result.output_tokens_per_s,
        "drain_s": result.drain_s,
        "busy_fraction": usage.busy_fraction,
        "kv_used_fraction": usage.kv_used_fraction,
        "num_preemptions": usage.num_preemptions,
    }
    for latency in result.latencies:
        row[f"{latency.key}_mean_s"] = latency.mean_s
        for percentile in latency.percentiles:
            row[f"{latency.key}_{column_name(percentile.percentile)}_s"] = percentile.value_s
    row = with_ends(row, [*result.bands, *_served(result)], also=(SECOND_HALF,))
    return Table("simulation", [Column(name, name) for name in row], [list(row.values())])


def column_name(percentile: float) -> str:
    """`p99`, `p99_9`."""
    return f"p{percentile:g}".replace(".", "_")


def _served(result: SimulateResult) -> list[BandedFigure]:
    """What was served over the second half of the arrivals errs as the whole run's throughput."""
    tokens = find_band(result.bands, THROUGHPUT, "mean")
    if tokens is None:
        return []
    served, share = result.saturation.served_per_s, 1 / tokens.value
    low, high = (served * share * end for end in (tokens.low, tokens.high))
    return [replace(tokens, figure=SECOND_HALF, value=served, low=low, high=high)]
