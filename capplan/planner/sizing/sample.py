"""What became of the requests of one simulated point, kept so that any limit can be judged."""

from __future__ import annotations

import json
import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

from capplan.formulas.statistics import percentile_of, section_half_width
from capplan.planner.sizing.limits import ClassLimit, Promise
from capplan.results.sizing import Level
from capplan.simulator.gap_sample import GapSample, bucket_start_s
from capplan.simulator.latencies import NAMES

NUM_SECTIONS = 10
T = TypeVar("T")
Verdict = Literal["holds", "fails", "undecided"]
# Gaps of each section by the logarithm of their length: (bucket, how many), as `GapSample` has it.
Gaps = tuple[tuple[tuple[int, int], ...], ...]
_HEAD = struct.Struct("<?I")
_NO_TPOT = -1.0  # a single token has none


@dataclass(frozen=True)
class Sample:
    """Times in seconds in order of arrival, after the warm-up; infinite without an answer.

    Single precision, as on disk: an answer does not depend on where its points come from.
    """

    ttft: array[float]
    tpot: array[float]
    e2e: array[float]
    kinds: bytes  # the class of each request, counted from 0
    saturated: bool
    gaps: Gaps = ()  # between tokens, where a limit asks for them

    @classmethod
    def of(
        cls,
        rows: Sequence[tuple[float, float | None, float, int]],
        *,
        saturated: bool,
        gaps: Gaps = (),
    ) -> Sample:
        """Rows of (ttft, tpot, e2e, class)."""
        return cls(
            array("f", [row[0] for row in rows]),
            array("f", [_NO_TPOT if row[1] is None else row[1] for row in rows]),
            array("f", [row[2] for row in rows]),
            bytes(row[3] for row in rows),
            saturated,
            gaps,
        )

    def encoded(self) -> bytes:
        parts = (self.ttft.tobytes(), self.tpot.tobytes(), self.e2e.tobytes(), self.kinds)
        gaps = json.dumps(self.gaps).encode() if self.gaps else b""
        return _HEAD.pack(self.saturated, len(self.ttft)) + b"".join(parts) + gaps

    @classmethod
    def decoded(cls, data: bytes) -> Sample:
        """Raises ValueError for anything that `encoded` did not make."""
        if len(data) < _HEAD.size:
            raise ValueError("too short")
        saturated, count = _HEAD.unpack_from(data)
        end = _HEAD.size + 13 * count
        if len(data) < end:
            raise ValueError("of the wrong length")
        ttft, tpot, e2e = (_column(data, i, count) for i in range(3))
        kinds, rest = data[_HEAD.size + 12 * count : end], data[end:]
        gaps = tuple(tuple((b, n) for b, n in section) for section in json.loads(rest or b"[]"))
        return cls(ttft, tpot, e2e, kinds, saturated, gaps)

    def values(self, key: str, kind: int | None) -> list[float]:
        """One measure in order of arrival; those that have none are left out."""
        column: array[float] = getattr(self, key)
        if kind is not None:
            return [v for v, k in zip(column, self.kinds, strict=True) if k == kind and v >= 0]
        return [value for value in column if value >= 0]


def _column(data: bytes, index: int, count: int) -> array[float]:
    column = array("f")
    column.frombytes(data[_HEAD.size + 4 * count * index : _HEAD.size + 4 * count * (index + 1)])
    return column


@dataclass(frozen=True)
class Judged:
    """``levels`` in the order of the limits."""

    verdict: Verdict
    levels: tuple[Level, ...]
    goodput_fraction: float
    goodput_holds: bool | None  # None: no target

    @property
    def falls_behind(self) -> bool:
        """Whether it fails by its queue alone: every limit and the goodput still hold."""
        each = all(level.holds for level in self.levels)
        return self.verdict == "fails" and each and self.goodput_holds is not False

    @property
    def binding(self) -> str:
        """The measure that is nearest to its limit, or furthest beyond it."""
        if self.goodput_holds is False and all(level.holds for level in self.levels):
            return "goodput"
        return max(self.levels, key=lambda level: level.used_fraction).key


def judge(sample: Sample, promise: Promise, kinds: Sequence[str], *, by_interval: bool) -> Judged:
    """Each limit against its percentile; ``by_interval`` leaves open what chance may turn."""
    levels = tuple(_level(sample, each, kinds) for each in promise.limits)
    verdicts = [_verdict(level, by_interval) for level in levels]
    good = _good(sample, promise, kinds)
    share = sum(good) / len(good) if good else 0.0
    holds = None
    if promise.goodput_fraction is not None:
        holds = share >= promise.goodput_fraction
        verdicts.append(_goodput_verdict(good, share, promise.goodput_fraction, by_interval))
    if sample.saturated or "fails" in verdicts:
        verdict: Verdict = "fails"
    else:
        verdict = "undecided" if "undecided" in verdicts else "holds"
    return Judged(verdict, levels, share, holds)


def _level(sample: Sample, each: ClassLimit, kinds: Sequence[str]) -> Level:
    limit = each.limit
    kind = None if each.kind is None else kinds.index(each.kind)
    value = low = high = None
    found: list[float] = []
    if limit.key == "itl":
        value = _of_gaps(sample.gaps, limit.percentile)
        parts = (_of_gaps((section,), limit.percentile) for section in sample.gaps)
        found = [part for part in parts if part is not None]
    elif values := sample.values(limit.key, kind):
        value = _percentile(values, limit.percentile)
        found = [_percentile(part, limit.percentile) for part in _sections(values)]
    if value is not None and len(found) > 1 and math.isfinite(max(value, *found)):
        half = section_half_width(value, found)
        low, high = max(0.0, value - half), value + half
    return Level(
        limit.key, NAMES[limit.key], limit.percentile, limit.limit_s, value, low, high, each.kind
    )


def gaps_of(watches: Iterable[GapSample], start_s: float, end_s: float) -> Gaps:
    """Of all replicas in a window, in sections of equal time."""
    edges = [start_s + (end_s - start_s) * i / NUM_SECTIONS for i in range(NUM_SECTIONS + 1)]
    counts: list[dict[int, int]] = [{} for _ in range(NUM_SECTIONS)]
    for watch in watches:
        for section, (low, high) in zip(counts, pairwise(edges), strict=True):
            for bucket, num in watch.within(low, math.nextafter(high, low)).histogram().items():
                section[bucket] = section.get(bucket, 0) + num
    return tuple(tuple(sorted(section.items())) for section in counts)


def _of_gaps(gaps: Gaps, percentile: float) -> float | None:
    """The upper end of the bucket that holds the percentile: at most 1.6 % more than it is."""
    counts: dict[int, int] = {}
    for section in gaps:
        for bucket, num in section:
            counts[bucket] = counts.get(bucket, 0) + num
    left = sum(counts.values()) * percentile / 100
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return bucket_start_s(bucket + 1)
    return None


def _sections(values: Sequence[T]) -> list[Sequence[T]]:
    """Stretches of equal length, in order of arrival."""
    cuts = [i * len(values) // NUM_SECTIONS for i in range(NUM_SECTIONS + 1)]
    return [values[start:end] for start, end in pairwise(cuts) if end > start]


def _percentile(values: Sequence[float], percentile: float) -> float:
    ordered = sorted(values)
    if math.isinf(ordered[-1]):  # no arithmetic between a number and infinity
        return ordered[math.ceil((len(ordered) - 1) * percentile / 100)]
    return percentile_of(ordered, percentile)


def _verdict(level: Level, by_interval: bool) -> Verdict:
    if level.value_s is None:
        return "holds"  # single tokens have no TPOT
    if by_interval and level.low_s is not None and level.high_s is not None:
        if level.high_s <= level.limit_s:
            return "holds"
        return "fails" if level.low_s > level.limit_s else "undecided"
    return "holds" if level.holds else "fails"


def _good(sample: Sample, promise: Promise, kinds: Sequence[str]) -> list[bool]:
    """Whether each request meets all limits that it has."""
    good = [True] * len(sample.ttft)
    for each in promise.limits:
        if each.limit.key == "itl":
            continue  # of gaps, not of requests
        kind = None if each.kind is None else kinds.index(each.kind)
        column: array[float] = getattr(sample, each.limit.key)
        most = each.limit.limit_s
        for i, value in enumerate(column):
            if value > most and (kind is None or sample.kinds[i] == kind):
                good[i] = False
    return good


def _goodput_verdict(
    good: Sequence[bool], share: float, target: float, by_interval: bool
) -> Verdict:
    half = section_half_width(share, [sum(part) / len(part) for part in _sections(good)])
    if by_interval and share - half < target <= share + half:
        return "undecided"
    return "holds" if share >= target else "fails"
