"""A plan and its variants under the same traffic: what each cures, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from capplan.formulas.statistics import percentile_of
from capplan.planner.simulate import SimulateAnswer
from capplan.results.simulate import Latency, SimulateResult
from capplan.results.variants import Change, Effect, Figure, VariantResult, VariantsResult
from capplan.simulator.latencies import NAMES, enough

# A move is an effect from these on: a tenth of the value, a percentage point of a share.
LEAST_RATIO = 1.1
LEAST_SHARE = 0.01
# Where so many more get no answer, the latencies are those of the few who got through early.
COLLAPSE = 0.1
MOST_EFFECTS = 4  # of each kind: the rest is in the table
RULE = (
    "moves of a tenth or more, of a percentage point or more for shares; nothing is better where "
    "a tenth more of the requests get no answer"
)


class Simulated(NamedTuple):
    """One variant after its simulation."""

    name: str
    note: str | None
    changes: tuple[Change, ...]
    answer: SimulateAnswer


def compare(simulated: Sequence[Simulated]) -> VariantsResult:
    """The first one is the plan as it is."""
    figures = _figures([one.answer for one in simulated])
    variants = []
    for index, one in enumerate(simulated):
        better, worse = _effects(figures, index)
        variants.append(
            VariantResult(one.name, one.note, one.changes, better, worse, one.answer.result)
        )
    return VariantsResult(
        feasible=simulated[0].answer.result.feasible,
        rule=RULE,
        figures=figures,
        variants=tuple(variants),
    )


def _effects(
    figures: Sequence[Figure], index: int
) -> tuple[tuple[Effect, ...], tuple[Effect, ...]]:
    better: list[tuple[float, Effect]] = []
    worse: list[tuple[float, Effect]] = []
    for figure in figures:
        before, after = figure.values[0], figure.values[index]
        if before is None or after is None or figure.better == "neither":
            continue
        size = _size(figure.kind, before, after)
        if size:
            cured = (after < before) == (figure.better == "lower")
            (better if cured else worse).append((-size, Effect(figure.key, before, after)))
    answered = next(f.values for f in figures if f.key == "answered_fraction")
    if (answered[0] or 0.0) - (answered[index] or 0.0) > COLLAPSE:
        better = []
    return _largest(better), _largest(worse)


def _largest(moves: list[tuple[float, Effect]]) -> tuple[Effect, ...]:
    moves.sort(key=lambda move: move[0])
    return tuple(effect for _, effect in moves[:MOST_EFFECTS])


def _size(kind: str, before: float, after: float) -> float:
    """How large a move is; 0 where it does not count."""
    if kind == "share":
        move = abs(after - before)
        return move if move >= LEAST_SHARE else 0.0
    low, high = sorted((before, after))
    if not low:
        return high if kind != "count" or high >= 10 else 0.0
    return high / low if high / low >= LEAST_RATIO else 0.0


def _figures(answers: Sequence[SimulateAnswer]) -> tuple[Figure, ...]:
    results = [answer.result for answer in answers]
    last = _percentile(results)
    found = [
        Figure(key, name, kind, better, tuple(of(result) for result in results))
        for key, name, kind, better, of in (*_ends(results), *_latencies(last), *LOAD)
    ]
    at = 1 + next(i for i, figure in enumerate(found) if figure.key == f"ttft_p{last:g}_s")
    found[at:at] = [*_by_attempt(answers, last), *_by_class(results, last)]
    return tuple(figure for figure in found if any(figure.values) or figure.key in ALWAYS)


# (key, name, kind, better, of a result)
Measure = tuple[str, str, str, str, Callable[[SimulateResult], float | None]]
LOAD: tuple[Measure, ...] = (
    (
        "goodput_per_s", "goodput", "rate", "higher",
        lambda r: r.goodput.goodput_per_s if r.goodput else None,
    ),
    ("busy_fraction", "time busy", "share", "neither", lambda r: r.usage.busy_fraction),
    (
        "prefix_hit_fraction", "prefix hits", "share", "higher",
        lambda r: r.usage.prefix_hit_fraction,
    ),
    ("wasted_fraction", "tokens wasted", "share", "lower", lambda r: r.usage.wasted_fraction),
    (
        "num_preemptions", "preemptions", "count", "lower",
        lambda r: float(r.usage.num_preemptions),
    ),
)  # fmt: skip
ALWAYS = ("answered_fraction", "goodput_per_s")  # the others only where one is not 0


def _ends(results: Sequence[SimulateResult]) -> list[Measure]:
    found: list[Measure] = [
        ("answered_fraction", "answered", "share", "higher", lambda r: _share(r, None))
    ]
    for end in ("timed out", "rejected", "failed"):
        key, name = f"{end.replace(' ', '_')}_fraction", f"{end} for good"
        found.append((key, name, "share", "lower", partial(_share, end=end)))
    if any(result.num_attempts > result.num_requests for result in results):
        found.append(
            (
                "attempts_per_request", "attempts a request", "ratio", "lower",
                lambda r: r.num_attempts / r.num_requests if r.num_requests else None,
            )
        )  # fmt: skip
    return found


def _latencies(last: float) -> list[Measure]:
    wanted = (("ttft", 50.0), ("ttft", last), ("tpot", 50.0), ("tpot", last), ("itl", last))
    return [
        (
            f"{key}_p{percentile:g}_s", f"{NAMES[key]} P{percentile:g}", "duration",
            "lower" if percentile == last else "neither",
            partial(_latency, key=key, percentile=percentile),
        )
        for key, percentile in wanted
    ]  # fmt: skip


def _by_class(results: Sequence[SimulateResult], last: float) -> list[Figure]:
    """TTFT of each class of the traffic, where it has several."""
    names = {found.name: None for result in results for found in result.classes}
    return [
        Figure(
            f"ttft_p{last:g}_of_{name}_s", f"TTFT P{last:g} of {name}", "duration", "lower",
            tuple(_of_class(result, name, last) for result in results),
        )
        for name in names
    ]  # fmt: skip


def _by_attempt(answers: Sequence[SimulateAnswer], last: float) -> list[Figure]:
    """TTFT as a server counts it, from the attempt that it answered, where there were several."""
    if not any(run.attempt_sent_s for answer in answers for run in answer.runs):
        return []
    waits = [
        sorted(
            record.first_token_s - run.attempt_sent_s.get(record.id, record.arrival_s)
            for run in answer.runs
            for record in run.records
            if record.arrival_s >= answer.result.warmup_s
        )
        for answer in answers
    ]
    values = tuple(
        percentile_of(times, last) if answer.result.latencies and enough(len(times), last) else None
        for answer, times in zip(answers, waits, strict=True)
    )
    name = f"TTFT P{last:g} by attempt"
    return [Figure(f"attempt_ttft_p{last:g}_s", name, "duration", "neither", values)]


def _percentile(results: Sequence[SimulateResult]) -> float:
    """The highest of TTFT that some variant had requests enough for."""
    shown = [
        p.percentile
        for result in results
        for latency in result.latencies
        for p in latency.percentiles
        if latency.key == "ttft" and p.value_s is not None
    ]
    return max(shown, default=99.0)


def _share(result: SimulateResult, end: str | None = None) -> float | None:
    """Of the requests: those that ended so; those that were answered."""
    if not result.num_requests:
        return None
    if end is None:
        return result.num_answered / result.num_requests
    return sum(one.count for one in result.unanswered if one.end == end) / result.num_requests


def _latency(result: SimulateResult, key: str, percentile: float) -> float | None:
    return _value(result.latencies, key, percentile)


def _of_class(result: SimulateResult, name: str, percentile: float) -> float | None:
    found = next((one for one in result.classes if one.name == name), None)
    return _value(found.latencies, "ttft", percentile) if found else None


def _value(latencies: Sequence[Latency], key: str, percentile: float) -> float | None:
    shown = next((latency.percentiles for latency in latencies if latency.key == key), ())
    return next((p.value_s for p in shown if p.percentile == percentile), None)
