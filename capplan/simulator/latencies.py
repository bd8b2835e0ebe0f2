"""Latencies of the requests that count: percentiles, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from capplan.formulas.statistics import (
    LEAST_BEYOND,
    percentile_of,
    samples_needed,
    section_half_width,
)
from capplan.results.simulate import ClassLatencies, Latency, Percentile
from capplan.simulator.gap_sample import GapSample
from capplan.simulator.requests import RequestRecord

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
NAMES = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2e": "E2E",
    "queue": "queue wait",
}
VALUES: dict[str, Callable[[RequestRecord], float | None]] = {
    "ttft": lambda record: record.ttft_s,
    "tpot": lambda record: record.tpot_s,
    "e2e": lambda record: record.e2e_s,
    "queue": lambda record: record.first_scheduled_s - record.arrival_s,
}


class Section(NamedTuple):
    """Part of the measured sample: a stretch of one run, or a replication."""

    records: Sequence[RequestRecord]
    gaps: GapSample


def latencies(sections: Sequence[Section], percentiles: tuple[float, ...]) -> list[Latency]:
    """TTFT, TPOT, ITL, E2E and queue wait over all sections together."""
    found = [_of_records(key, sections, percentiles) for key in ("ttft", "tpot")]
    found.append(_of_gaps(sections, percentiles))
    return found + [_of_records(key, sections, percentiles) for key in ("e2e", "queue")]


def by_class(sections: Sequence[Section], percentiles: tuple[float, ...]) -> list[ClassLatencies]:
    """TTFT, TPOT and E2E of each class of the traffic, where it has several.

    Requests of a class are named `class/...`.
    """
    parts: dict[str, list[list[RequestRecord]]] = {}
    for index, section in enumerate(sections):
        for record in section.records:
            name, slash, _ = record.id.rpartition("/")
            if slash:
                parts.setdefault(name, [[] for _ in sections])[index].append(record)
    if len(parts) < 2:
        return []
    return [
        ClassLatencies(
            name,
            sum(map(len, records)),
            tuple(
                _of_records(key, [Section(part, GapSample()) for part in records], percentiles)
                for key in ("ttft", "tpot", "e2e")
            ),
        )
        for name, records in sorted(parts.items())
    ]


def values_of(key: str, records: Sequence[RequestRecord]) -> list[float]:
    """One measure of these requests, in rising order; those that have none are left out."""
    value_of = VALUES[key]
    return sorted(v for v in map(value_of, records) if v is not None)


def _of_records(key: str, sections: Sequence[Section], percentiles: tuple[float, ...]) -> Latency:
    parts = [values_of(key, section.records) for section in sections]
    every = sorted(value for part in parts for value in part)
    overall = [percentile_of(every, p) if enough(len(every), p) else None for p in percentiles]
    by_part = [
        [percentile_of(part, p) if _shows(len(part), p) else None for p in percentiles]
        for part in parts
    ]
    mean = sum(every) / len(every) if every else None
    return _latency(key, len(every), mean, every[-1] if every else None, percentiles, overall,
                    by_part)  # fmt: skip


def _of_gaps(sections: Sequence[Section], percentiles: tuple[float, ...]) -> Latency:
    every = GapSample()
    for section in sections:
        every.extend(section.gaps)
    count = every.count
    shown = tuple(p for p in percentiles if enough(count, p))
    values = dict(zip(shown, every.percentiles(shown), strict=True)) if shown else {}
    by_part: list[list[float | None]] = []
    for section in sections:
        size = section.gaps.count
        known = tuple(p for p in shown if _shows(size, p))
        part = dict(zip(known, section.gaps.percentiles(known), strict=True)) if known else {}
        by_part.append([part.get(p) for p in percentiles])
    return _latency(
        "itl", count, every.mean_s if count else None, every.max_s if count else None,
        percentiles, [values.get(p) for p in percentiles], by_part,
    )  # fmt: skip


def _latency(
    key: str,
    count: int,
    mean_s: float | None,
    max_s: float | None,
    percentiles: Sequence[float],
    overall: Sequence[float | None],
    by_part: Sequence[Sequence[float | None]],
) -> Latency:
    found = []
    for i, percentile in enumerate(percentiles):
        value = overall[i]
        parts = [row[i] for row in by_part]
        known = [part for part in parts if part is not None]
        half = None
        if value is not None and len(known) == len(parts) >= 2:
            half = section_half_width(value, known)
            # What is left of equal values is rounding.
            half = 0.0 if half < 1e-9 * value else half
        found.append(
            Percentile(
                percentile=percentile,
                value_s=value,
                low_s=None if value is None or half is None else max(0.0, value - half),
                high_s=None if value is None or half is None else value + half,
                num_needed=samples_needed(percentile) if value is None else None,
            )
        )
    return Latency(key, NAMES[key], count, mean_s, max_s, tuple(found))


def enough(count: int, percentile: float) -> bool:
    """Whether ten samples lie beyond."""
    return count >= samples_needed(percentile)


def _shows(count: int, percentile: float) -> bool:
    """Whether a section says anything about a percentile: one sample beyond it."""
    return count * LEAST_BEYOND >= samples_needed(percentile)
