"""Errors of predictions, as `score_predictions.py` of the measured table counts them."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from capplan.accuracy.client_metrics import quantile
from capplan.accuracy.measured import METRICS, MeasuredRun
from capplan.accuracy.predict import Prediction
from capplan.results.accuracy import ErrorSummary, GroupErrors, Target, Unpredicted

# Each run counts once a figure: by the mean where its source states it, else by the median.
TPOT = ("tpot_mean_ms", "tpot_p50_ms", "itl_mean_ms")
THROUGHPUT = ("output_tok_s", "req_s")
TTFT = ("ttft_mean_ms", "ttft_p50_ms")
TTFT_P99 = ("ttft_p99_ms",)
Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """One measured cell and what was predicted for it."""

    run: MeasuredRun
    metric: str
    measured: float
    predicted: float | None

    @property
    def error(self) -> float | None:
        if self.predicted is None:
            return None
        return abs(self.predicted - self.measured) / self.measured


LEAST_COVERAGE = 0.95
# Name, columns, workloads, most median, most 90th percentile.
TARGETS: tuple[tuple[str, Columns, tuple[str, ...], float, float | None], ...] = (
    ("TPOT", TPOT, ("closed", "poisson"), 0.08, 0.25),
    ("throughput", THROUGHPUT, ("offline", "burst", "closed", "static"), 0.10, 0.30),
    ("TTFT", TTFT, ("closed", "poisson"), 0.20, 0.50),
    ("TTFT P99", TTFT_P99, ("poisson",), 0.30, None),
)


def pairs_of(run: MeasuredRun, prediction: Prediction) -> list[Pair]:
    """Every measured cell of a row that is scored."""
    return [
        Pair(run, name, value, prediction.metrics.get(name) or None)
        for name, value in run.scored.items()
    ]


def first_of(pairs: Iterable[Pair], columns: Columns) -> Pair | None:
    """The first of these columns that was measured."""
    by_name = {pair.metric: pair for pair in pairs}
    return next((by_name[name] for name in columns if name in by_name), None)


def summary(name: str, pairs: Sequence[Pair]) -> ErrorSummary:
    """Of all cells; those without a prediction count against coverage alone."""
    compared = [pair for pair in pairs if pair.predicted is not None]
    errors = sorted(pair.error for pair in compared if pair.error is not None)
    ratios = [pair.predicted / pair.measured for pair in compared if pair.predicted is not None]
    some = bool(errors)
    return ErrorSummary(
        name=name,
        num_measured=len(pairs),
        num_compared=len(compared),
        coverage_fraction=len(compared) / len(pairs) if pairs else 0.0,
        median_error_fraction=quantile(errors, 0.5) if some else None,
        mean_error_fraction=statistics.fmean(errors) if some else None,
        p90_error_fraction=quantile(errors, 0.9) if some else None,
        bias_ratio=statistics.median(ratios) if some else None,
    )


def by_metric(rows: Sequence[Sequence[Pair]]) -> tuple[ErrorSummary, ...]:
    """All cells of each column."""
    found: dict[str, list[Pair]] = defaultdict(list)
    for pairs in rows:
        for pair in pairs:
            found[pair.metric].append(pair)
    return tuple(summary(name, found[name]) for name in METRICS if name in found)


def figures(rows: Sequence[Sequence[Pair]]) -> tuple[ErrorSummary, ...]:
    """The figures of the target table over all workloads that are scored on them."""
    found = []
    for name, columns, workloads, _, _ in TARGETS:
        pairs = _figure(rows, columns, workloads)
        if pairs:
            found.append(summary(name, pairs))
    return tuple(found)


def targets(rows: Sequence[Sequence[Pair]]) -> tuple[Target, ...]:
    found = []
    for name, columns, workloads, median, p90 in TARGETS:
        errors = summary(name, _figure(rows, columns, workloads))
        met = None
        if errors.median_error_fraction is not None and errors.p90_error_fraction is not None:
            met = errors.coverage_fraction >= LEAST_COVERAGE
            met = met and errors.median_error_fraction <= median
            met = met and (p90 is None or errors.p90_error_fraction <= p90)
        found.append(Target(errors, workloads, median, p90, met))
    return tuple(found)


def _figure(
    rows: Sequence[Sequence[Pair]], columns: Columns, workloads: tuple[str, ...]
) -> list[Pair]:
    chosen = (pairs for pairs in rows if pairs and pairs[0].run.workload in workloads)
    return [pair for pair in (first_of(pairs, columns) for pairs in chosen) if pair is not None]


def grouped(
    rows: Sequence[Sequence[Pair]], keys: Callable[[MeasuredRun], tuple[str, ...]]
) -> tuple[GroupErrors, ...]:
    """Figures of the rows that have the same keys, in the order of these."""
    groups: dict[tuple[str, ...], list[Sequence[Pair]]] = defaultdict(list)
    for pairs in rows:
        if pairs:
            groups[keys(pairs[0].run)].append(pairs)
    return tuple(
        GroupErrors(values, len(members), figures(members))
        for values, members in sorted(groups.items())
    )


def worst_pairs(rows: Sequence[Sequence[Pair]], num: int) -> list[Pair]:
    """The largest errors of the target table's figures, one a row and figure."""
    found: list[tuple[float, str, str, Pair]] = []
    for _, columns, workloads, _, _ in TARGETS:
        for pair in _figure(rows, columns, workloads):
            if pair.error is not None:
                found.append((-pair.error, pair.run.id, pair.metric, pair))
    return [pair for _, _, _, pair in sorted(found, key=lambda entry: entry[:3])[:num]]


def unpredicted(
    runs: Sequence[MeasuredRun], predictions: Sequence[Prediction]
) -> tuple[Unpredicted, ...]:
    """Why rows have no prediction, most frequent first."""
    reasons: Counter[str] = Counter()
    example: dict[str, str] = {}
    for run, prediction in zip(runs, predictions, strict=True):
        if prediction.reason is not None:
            reasons[prediction.reason] += 1
            example.setdefault(prediction.reason, run.id)
    ordered = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(Unpredicted(reason, num, example[reason]) for reason, num in ordered)
