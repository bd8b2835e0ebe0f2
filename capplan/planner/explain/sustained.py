"""What a replica sustains: bracket, bisection by simulation, and the replicas that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capplan import units
from capplan.planner.explain.figure import figure
from capplan.planner.explain.run_length import point_figures
from capplan.planner.explain.steps import step_time
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.grid import STEP
from capplan.planner.sizing.search import Search
from capplan.planner.sizing.sustained import SLACK, SURELY
from capplan.results.bands import statistic_name
from capplan.results.explanation import Figure, Symbol
from capplan.results.gpus import GpusResult
from capplan.results.sizing import Level, SizedPoint, Sustained

_PLANNER = "docs/planner.md"


def sustained_figures(candidate: Candidate, aims: Search, result: GpusResult) -> Iterator[Figure]:
    """From the bound of the replica as its engine runs it to the number of replicas."""
    sustained = result.sustained
    assert sustained is not None
    yield from _bound(candidate)
    yield from _bracket(candidate, sustained)
    here = _at(sustained, sustained.requests_per_s)
    if here is not None:
        yield from point_figures(candidate, aims, sustained, here)
    yield _found(sustained)
    for level in sustained.levels:
        if level.value_s is not None:
            yield limit_figure(level, "at the sustained rate", _decided(level, sustained))
    yield from _replicas(candidate, aims, result)


def _bound(candidate: Candidate) -> Iterator[Figure]:
    """With the engine's own pool, seats, budget and overheads; outputs of one token have none."""
    best, replica = candidate.best, candidate.replica
    output = replica.question.workload.output_tokens
    if best is None or output == 1:
        return
    parts = replica.steps.time(replica.mean_batch(best.decode_batch))
    yield step_time(
        f"step of {best.decode_batch:.3g} decodes and their prompts, as served",
        parts,
        best.step_time_s,
        why="The simulator asks for such a time at every step: this one is at the bound.",
        picture="One pass of the whole batch, the engine's own host time included.",
    )
    yield figure(
        "bound of a replica as its engine runs it",
        candidate.bound_per_s,
        "req/s",
        "carried = batch / ((output - 1) × time)",
        [
            Symbol("batch", "decodes a step, at the edge of the limits", best.decode_batch, ""),
            Symbol("output", "of an answer", output, "tokens"),
            Symbol("time", "of that step", best.step_time_s, "s"),
        ],
        why="No simulation can find more: means without a queue, the limits just kept.",
        picture="A bus that is full at every stop and never waits.",
        check=f"{candidate.serving.profile.name} seats "
        f"{candidate.serving.config.slots:,} requests; the bound stops at "
        f"{_limit(candidate.bound_limit)}.",
        source="docs/model.md 17; " + _PLANNER,
    )


def _bracket(candidate: Candidate, sustained: Sustained) -> Iterator[Figure]:
    bound = Symbol("bound", "of a replica as its engine runs it", candidate.bound_per_s, "req/s")
    yield figure(
        "top of the bracket",
        candidate.bound_per_s * SLACK,
        "req/s",
        "top = bound × slack",
        [bound, Symbol("slack", "fixed lengths may touch a bound of means", SLACK, "")],
        why="Rates above it fail without a simulation.",
        picture="The upper end of the ruler on which the rate is looked for.",
        check=f"{sustained.requests_per_s / candidate.bound_per_s:.1%} of the bound are sustained.",
        source=_PLANNER,
    )
    surely = next(s for s in SURELY if sustained.requests_per_s >= candidate.bound_per_s * s)
    yield figure(
        "bottom of the bracket",
        candidate.bound_per_s * surely,
        "req/s",
        "bottom = bound × share",
        [bound, Symbol("share", "below which a rate is taken to hold", surely, "")],
        why="Rates below it need no simulation: where the search ends there, it goes on lower.",
        picture="The lower end of the ruler.",
        check=f"The search ended above it, at {_rate(sustained.requests_per_s)}.",
        source=_PLANNER,
    )


def _found(sustained: Sustained) -> Figure:
    beyond = _at(sustained, sustained.fails_at_per_s)
    why_fails = "above the bracket"
    if beyond is not None:
        why_fails = f"{_level(beyond.level)} is over its limit"
    return figure(
        "sustained by a replica",
        sustained.requests_per_s,
        "req/s",
        "sustains = fails / step",
        [
            Symbol("fails", f"the next rate of the grid: {why_fails}", sustained.fails_at_per_s,
                   "req/s"),
            Symbol("step", "from one rate of the grid to the next", STEP, ""),
        ],
        why="This is what a replica is worth: the highest rate at which every limit holds.",
        picture="Turning up the tap until the sink overflows, then half back, and again.",
        check=f"Bisection, in this order: {_path(sustained)}. {_limit(sustained.binding)} binds.",
        source=_PLANNER + "; percentiles with intervals by sectioning, Asmussen & Glynn 2007",
    )  # fmt: skip


def _limit(key: str) -> str:
    return key.upper() if key in ("ttft", "tpot", "itl", "e2e") else key.replace("_", " ")


def _path(sustained: Sustained) -> str:
    """`17.6 holds, 20.1 TPOT fails, ..` of the group that was decisive."""
    words = []
    for point in sustained.points:
        if point.num_replicas != sustained.num_replicas:
            continue
        rate = units.format_number(point.requests_per_s, digits=3)
        verdict = "holds" if point.holds else f"{point.level.name} fails"
        words.append(f"{rate} {verdict}" + (" (longer run)" if point.was_longer else ""))
    return ", ".join(words) + " req/s"


def _at(sustained: Sustained, rate_per_s: float) -> SizedPoint | None:
    return next(
        (
            point
            for point in sustained.points
            if point.num_replicas == sustained.num_replicas
            and math.isclose(point.requests_per_s, rate_per_s, rel_tol=1e-9)
        ),
        None,
    )


def _decided(level: Level, sustained: Sustained) -> str:
    """By the interval, or as it stood after a longer run."""
    here = _at(sustained, sustained.requests_per_s)
    if level.low_s is None or level.high_s is None:
        return "Too few requests for an interval."
    interval = f"95 % interval {_time(level.low_s)} to {_time(level.high_s)}"
    if here is not None and here.was_longer:
        return f"{interval}; a shorter run left a limit open, and this one stands as it is."
    return f"{interval}: all of it below the limit."


def limit_figure(level: Level, where: str, check: str) -> Figure:
    """How near a percentile is to its limit."""
    assert level.value_s is not None
    return figure(
        f"share of its limit that {_level(level)} takes {where}",
        level.value_s / level.limit_s,
        "",
        "taken = value / limit",
        [
            Symbol("value", "simulated", level.value_s, "s"),
            Symbol("limit", "of the service level", level.limit_s, "s"),
        ],
        why="It says how far the limit is, and which of them is nearest.",
        picture="The gap between the simulated value and the line that it must not cross.",
        check=check,
        source="definition",
    )


def _replicas(candidate: Candidate, aims: Search, result: GpusResult) -> Iterator[Figure]:
    sustained = result.sustained
    assert sustained is not None
    assert result.num_replicas is not None
    assert result.num_gpus is not None
    assert result.busy_fraction is not None
    rate = Symbol("rate", "offered at the peak", aims.demand.peak_per_s, "req/s")
    sustains = Symbol("sustains", "a replica", sustained.requests_per_s, "req/s")
    symbols, formula = [rate, sustains], "ceil(rate / sustains)"
    added = result.sizing.proof.num_added if result.sizing and result.sizing.proof else 0
    if math.ceil(rate.value / sustains.value - 1e-9) != result.num_replicas - added:
        tried = result.num_replicas - added
        symbols.append(Symbol("tried", "fewer together did not sustain it", tried, ""))
        formula = f"max({formula}, tried)"
    if added:
        symbols.append(Symbol("added", "that the proof asked for", added, ""))
        formula += " + added"
    yield figure(
        "replicas",
        result.num_replicas,
        "",
        f"replicas = {formula}",
        symbols,
        why="The fewest whose sustained rates together cover the traffic.",
        picture="Taps side by side until the tub fills as fast as it must.",
        check=f"One fewer would be asked for "
        f"{_rate(rate.value / max(1, result.num_replicas - 1))} each.",
        source=_PLANNER,
    )
    num = Symbol("replicas", "that carry the load", result.num_replicas, "")
    yield figure(
        "GPUs",
        result.num_gpus,
        "",
        "gpus = replicas × each",
        [num, Symbol("each", "GPUs a replica", candidate.gpus_per_replica, "")],
        why="This is the answer.",
        picture="Replicas side by side.",
        check=_beside_the_bounds(result),
        source="definition",
    )
    yield figure(
        "share of what is sustained",
        result.busy_fraction,
        "",
        "busy = rate / (replicas × sustains)",
        [rate, num, sustains],
        why="What is left is for growth and for a prediction that is off.",
        picture="How far the taps are turned.",
        check=f"The fleet is sized for {_rate(result.num_replicas * sustains.value)}.",
        source=_PLANNER,
    )


def _beside_the_bounds(result: GpusResult) -> str:
    if result.bounds is None:  # of stages and copies of the attention
        return "The bounds know no replicas of this shape."
    bounds = result.bounds.num_gpus_combined
    return f"The bounds, without queue and percentile, ask for {bounds:,}."


def _level(level: Level) -> str:
    return f"{level.name} {statistic_name(level.percentile, level.kind)}"


def _rate(per_s: float) -> str:
    return units.format_rate(per_s, digits=3)


def _time(seconds: float) -> str:
    return units.format_duration(seconds, digits=3)
