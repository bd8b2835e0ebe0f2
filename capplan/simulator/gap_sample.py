"""A sample of gaps between tokens, kept as arithmetic progressions: exact, and small."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

from capplan.formulas.statistics import percentile_rank

BUCKETS_PER_E = 64  # 1.6 % wide
_LEAST_GAP_S = 1e-9  # tokens that come together


class GapSample:
    """Every gap of a run. A stretch of decodes is one entry: its first step, what each step adds
    to it, how many steps, and how many decodes."""

    def __init__(self) -> None:
        self._at = array("d")  # when the first step began
        self._first = array("d")
        self._more = array("d")
        self._steps = array("q")
        self._weight = array("q")

    def add(self, at_s: float, first_s: float, more_s: float, num_steps: int, weight: int) -> None:
        self._at.append(at_s)
        self._first.append(first_s)
        self._more.append(more_s)
        self._steps.append(num_steps)
        self._weight.append(weight)

    def within(self, start_s: float, end_s: float) -> GapSample:
        """Those whose entry began in a window."""
        kept = GapSample()
        for at, entry in zip(self._at, self._entries(), strict=True):
            if start_s <= at <= end_s:
                kept.add(at, *entry)
        return kept

    def extend(self, other: GapSample) -> None:
        """Take in the gaps of another replica or run."""
        self._at += other._at
        self._first += other._first
        self._more += other._more
        self._steps += other._steps
        self._weight += other._weight

    def _entries(self) -> Iterator[tuple[float, float, int, int]]:
        return zip(self._first, self._more, self._steps, self._weight, strict=True)

    @property
    def count(self) -> int:
        return sum(map(int.__mul__, self._steps, self._weight))

    @property
    def mean_s(self) -> float:
        total = sum(w * (n * a + d * n * (n - 1) / 2) for a, d, n, w in self._entries())
        return total / self.count

    @property
    def max_s(self) -> float:
        return max(max(a, a + d * (n - 1)) for a, d, n, _ in self._entries())

    def _spans(self) -> list[tuple[int, int]]:
        """The first and the last bucket of every entry."""
        logarithm, least, floor = math.log, _LEAST_GAP_S, math.floor
        found = []
        for first, more, steps, _ in self._entries():
            low = floor(logarithm(first if first > least else least) * BUCKETS_PER_E)
            high = low
            if steps > 1 and more:
                last = first + more * (steps - 1)
                high = floor(logarithm(last if last > least else least) * BUCKETS_PER_E)
            found.append((low, high))
        return found

    def histogram(self) -> dict[int, int]:
        """Gaps by the logarithm of their length, in `BUCKETS_PER_E` buckets a factor of e."""
        return self._counts(self._spans())

    def _counts(self, spans: list[tuple[int, int]]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for (first, more, steps, weight), (low, high) in zip(self._entries(), spans, strict=True):
            if low == high:
                counts[low] = counts.get(low, 0) + steps * weight
                continue
            for k in range(steps):
                bucket = _bucket(first + more * k)
                counts[bucket] = counts.get(bucket, 0) + weight
        return counts

    def percentiles(self, wanted: tuple[float, ...]) -> list[float]:
        """Percentiles (0 to 100) over all gaps, as if they were listed one by one.

        Only the buckets that hold a wanted rank are looked into.
        """
        spans, total = self._spans(), self.count
        ranks = [percentile_rank(total, percentile) for percentile in wanted]
        places = {place for low, high, _ in ranks for place in (low, high)}
        found = self._at_ranks(spans, sorted(places))
        return [found[low] + (found[high] - found[low]) * share for low, high, share in ranks]

    def _at_ranks(self, spans: list[tuple[int, int]], places: list[int]) -> dict[int, float]:
        """The elements at these places of the sorted list."""
        counts = self._counts(spans)
        wanted: dict[int, list[tuple[int, int]]] = {}  # bucket: places, and what lies before it
        before, at = 0, 0
        for bucket in sorted(counts):
            while at < len(places) and places[at] < before + counts[bucket]:
                wanted.setdefault(bucket, []).append((places[at], before))
                at += 1
            before += counts[bucket]
        inside: dict[int, dict[float, int]] = {bucket: {} for bucket in wanted}
        for (first, more, steps, weight), (low, high) in zip(self._entries(), spans, strict=True):
            if low == high:
                values = inside.get(low)
                if values is not None:
                    for k in range(steps):
                        value = first + more * k
                        values[value] = values.get(value, 0) + weight
                continue
            for k in range(steps):
                value = first + more * k
                values = inside.get(_bucket(value))
                if values is not None:
                    values[value] = values.get(value, 0) + weight
        found: dict[int, float] = {}
        for bucket, asked in wanted.items():
            ordered = sorted(inside[bucket].items())
            for place, lies_before in asked:
                found[place] = _element(ordered, place - lies_before)
        return found


def _bucket(gap_s: float) -> int:
    return math.floor(math.log(gap_s if gap_s > _LEAST_GAP_S else _LEAST_GAP_S) * BUCKETS_PER_E)


def bucket_start_s(bucket: int) -> float:
    """Where a bucket of the histogram begins."""
    return math.exp(bucket / BUCKETS_PER_E)


def _element(ordered: list[tuple[float, int]], place: int) -> float:
    for value, count in ordered:
        if place < count:
            return value
        place -= count
    return ordered[-1][0]
