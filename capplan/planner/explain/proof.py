"""The proof of a simulated answer: the fleet as a whole, its margin, and the loss of a replica."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capplan import units
from capplan.planner.explain.figure import figure
from capplan.planner.explain.run_length import run_symbols
from capplan.planner.explain.sustained import limit_figure
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.proof import MORE_REQUESTS, proof_length
from capplan.planner.sizing.search import Search
from capplan.results.explanation import Figure, Symbol
from capplan.results.gpus import GpusResult
from capplan.results.sizing import Level, Proof

_PROOF = "docs/planner.md, the proof"


def proof_figures(candidate: Candidate, aims: Search, result: GpusResult) -> Iterator[Figure]:
    """Empty where nothing was proved."""
    proof = result.sizing.proof if result.sizing else None
    if proof is None:
        return
    if proof.course is None:
        yield _length(candidate, aims, proof)
    for level in proof.levels:
        if level.value_s is not None and math.isfinite(level.value_s):
            yield limit_figure(level, "of the whole fleet", _check(level, proof))
    yield figure(
        "rate at which the fleet saturates",
        proof.saturates_at_per_s,
        "req/s",
        "saturates = replicas × full",
        [
            Symbol("replicas", "that carry the load", proof.num_replicas, ""),
            Symbol("full", "of one with every seat taken", candidate.saturation_per_s, "req/s"),
        ],
        why="Beyond it queues grow without end, whatever the limits are.",
        picture="All taps fully open.",
        check=_loss(proof),
        source=_PROOF + "; the closed form of the steady state, docs/model.md 17",
    )


def _length(candidate: Candidate, aims: Search, proof: Proof) -> Figure:
    num = proof.num_replicas
    length = proof_length(candidate, aims, num, proof.rate_per_s)
    rate = units.format_rate(proof.rate_per_s, digits=3)
    counted = (
        f"{MORE_REQUESTS:g} times the {aims.num_samples:,} with which ten lie beyond the percentile"
    )
    if aims.demand.least_requests:
        counted += ", or until each class has come in ten bursts"
    return figure(
        "requests of the proof",
        proof.num_requests,
        "",
        "requests = max(before + counted, lasting)",
        run_symbols(length, counted),
        why="What was sized in groups is simulated once more as one fleet, before it is bought.",
        picture="A dress rehearsal, with an audience that has not seen the play.",
        check=f"{num:,} replicas behind {proof.router} at {rate}, the planned rate raised to the "
        "grid of rates, on other random numbers than those that sized them; "
        f"{proof.num_measured:,} count.",
        source=_PROOF,
    )


def _check(level: Level, proof: Proof) -> str:
    holds = "It holds" if level.holds else "It is missed"
    if level.low_s is None or level.high_s is None:
        return f"{holds}."
    low, high = (units.format_duration(value, digits=3) for value in (level.low_s, level.high_s))
    more = f", with {proof.num_added} more than were sized" if proof.num_added else ""
    return f"{holds}{more}; 95 % interval {low} to {high}."


def _loss(proof: Proof) -> str:
    if proof.loss is None:
        return "Of one replica no loss can be survived."
    loss = proof.loss
    then = "keep the limits" if loss.holds else "miss the limits"
    if loss.falls_behind:
        then = "fall behind, more coming in than going out"
    return (
        f"When one of {loss.num_replicas}, spares included, dies, {loss.num_sent_again:,} attempts "
        f"come again and the others then {then}."
    )
