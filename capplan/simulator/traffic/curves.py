"""A rate over time, as straight pieces, and its inverse: when the n-th request is due.

Arrivals at a rate that changes are arrivals at rate 1 on a clock that runs with the rate: if the
N(t) of rate 1 has events at s_1, s_2, ..., then the events at Lambda^-1(s_i) have the rate
lambda(t), Lambda(t) its integral (Çinlar, Introduction to Stochastic Processes, 1975, section 4.7).
The integral of straight pieces is inverted in closed form: no thinning, so that a request keeps its
random number when the curve changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from capplan.specs.rates import ConstantRate, Diurnal, Ramp, Steps

DIURNAL_PIECES = 288  # five minutes each; straight lines miss the smooth curve by 1e-4 of the peak


@dataclass(frozen=True, slots=True)
class Piece:
    length_s: float
    start_per_s: float
    end_per_s: float

    @property
    def num_requests(self) -> float:
        """Expected in this piece."""
        return self.length_s * (self.start_per_s + self.end_per_s) / 2

    def until(self, time_s: float) -> float:
        """Expected from the start of the piece to `time_s`."""
        slope = (self.end_per_s - self.start_per_s) / self.length_s
        return time_s * (self.start_per_s + slope * time_s / 2)

    def time_of(self, count: float) -> float:
        """When so many are due, from the start of the piece: the root of r t + s t^2 / 2 = count,

        in the form that also holds for r = 0 and for s = 0.
        """
        slope = (self.end_per_s - self.start_per_s) / self.length_s
        root = math.sqrt(max(0.0, self.start_per_s**2 + 2 * slope * count))
        return min(self.length_s, 2 * count / (self.start_per_s + root)) if count else 0.0


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Pieces one after the other; then the last rate goes on, the curve repeats, or it stops."""

    pieces: tuple[Piece, ...]
    then: Literal["hold", "repeat", "stop"]

    @property
    def length_s(self) -> float:
        return math.fsum(piece.length_s for piece in self.pieces)

    @property
    def mean_per_s(self) -> float:
        """Over the pieces, once."""
        return math.fsum(piece.num_requests for piece in self.pieces) / self.length_s

    def mean_over(self, num_requests: float | None, duration_s: float | None) -> float:
        """Over a run that ends with so many requests or after this time, whichever is first."""
        if self.is_constant:
            return self.pieces[0].start_per_s
        end_s = math.inf if duration_s is None else duration_s
        if num_requests is not None:
            end_s = min(end_s, *next(self.times([[num_requests]])), math.inf)
        if math.isinf(end_s):
            return self.mean_per_s
        start_s = count = 0.0
        for piece in self._endless():
            if start_s + piece.length_s >= end_s:
                return (count + piece.until(end_s - start_s)) / end_s
            start_s += piece.length_s
            count += piece.num_requests
        return count / start_s  # it stops before

    def begun(self, time_s: float) -> RateCurve:
        """The same rates on a clock that starts later."""
        if self.is_constant or not time_s:
            return self
        pieces, skipped = list(self.pieces), list[Piece]()
        if self.then == "repeat":
            time_s %= self.length_s
        while pieces and time_s >= pieces[0].length_s:
            time_s -= pieces[0].length_s
            skipped.append(pieces.pop(0))
        if not pieces:  # it holds, or has stopped
            last_per_s = self.pieces[-1].end_per_s if self.then == "hold" else 0.0
            return RateCurve((Piece(1.0, last_per_s, last_per_s),), self.then)
        first, *rest = pieces
        if time_s:
            slope = (first.end_per_s - first.start_per_s) / first.length_s
            now_per_s = first.start_per_s + slope * time_s
            skipped.append(Piece(time_s, first.start_per_s, now_per_s))
            first = Piece(first.length_s - time_s, now_per_s, first.end_per_s)
        again = skipped if self.then == "repeat" else ()
        return RateCurve((first, *rest, *again), self.then)

    def rate_at(self, time_s: float) -> float:
        """Requests a second from that moment on."""
        return self.begun(time_s).pieces[0].start_per_s

    @property
    def moments_s(self) -> list[float]:
        """When pieces begin, and when the last one ends."""
        lengths = (piece.length_s for piece in self.pieces)
        return [0.0, *itertools.accumulate(lengths)]

    @property
    def peak_per_s(self) -> float:
        return max(max(piece.start_per_s, piece.end_per_s) for piece in self.pieces)

    def times(self, counts: Iterable[Sequence[float]]) -> Iterator[list[float]]:
        """Lambda^-1 of rising numbers, batch for batch; ends where the curve stops."""
        if self.is_constant:
            rate = self.pieces[0].start_per_s
            return ([count / rate for count in batch] for batch in counts)
        return self._over_pieces(counts)

    @property
    def is_constant(self) -> bool:
        first = self.pieces[0]
        alone = len(self.pieces) == 1 and self.then == "hold"
        return alone and first.start_per_s == first.end_per_s

    def _over_pieces(self, counts: Iterable[Sequence[float]]) -> Iterator[list[float]]:
        pieces = self._endless()
        piece = next(pieces)
        start_s = passed = 0.0  # time and count at the start of the piece
        due = piece.num_requests
        for batch in counts:
            found: list[float] = []
            for count in batch:
                while count - passed > due:
                    start_s += piece.length_s
                    passed += due
                    following = next(pieces, None)
                    if following is None:
                        yield found
                        return
                    piece, due = following, following.num_requests
                found.append(start_s + piece.time_of(count - passed))
            yield found

    def _endless(self) -> Iterator[Piece]:
        yield from self.pieces
        last = self.pieces[-1]
        while self.then == "hold":
            yield Piece(last.length_s, last.end_per_s, last.end_per_s)
        while self.then == "repeat":
            yield from self.pieces


def curve_of(rate: ConstantRate | Ramp | Steps | Diurnal, factor: float = 1.0) -> RateCurve:
    """The curve that a plan describes; `factor` multiplies a plain rate."""
    if isinstance(rate, ConstantRate):
        per_s = rate.rate * factor
        return RateCurve((Piece(1.0, per_s, per_s),), "hold")
    if isinstance(rate, Ramp):
        return RateCurve((Piece(rate.over, rate.start, rate.end),), "hold")
    if isinstance(rate, Steps):
        return RateCurve(tuple(Piece(rate.each, r, r) for r in rate.rates), "stop")
    return RateCurve(tuple(_diurnal(rate)), "repeat")


def _diurnal(rate: Diurnal) -> list[Piece]:
    """A day from `start_at` on."""
    if rate.weights:
        parts = len(rate.weights)
        scale = rate.mean * parts / math.fsum(rate.weights)
        pieces = [Piece(rate.day / parts, w * scale, w * scale) for w in rate.weights]
        return list(RateCurve(tuple(pieces), "repeat").begun(rate.start_at).pieces)
    kappa = _concentration(rate.peak_factor)
    turn = 2 * math.pi * (rate.start_at - rate.peak_at) / rate.day
    angles = [turn + 2 * math.pi * i / DIURNAL_PIECES for i in range(DIURNAL_PIECES)]
    heights = [math.exp(kappa * (math.cos(angle) - 1)) for angle in angles]
    scale = rate.mean * DIURNAL_PIECES / math.fsum(heights)
    ends = [*heights[1:], heights[0]]
    return [
        Piece(rate.day / DIURNAL_PIECES, start * scale, end * scale)
        for start, end in zip(heights, ends, strict=True)
    ]


def _concentration(peak_factor: float) -> float:
    """kappa of exp(kappa cos x), the von Mises curve, whose peak is `peak_factor` times its mean.

    A sine cannot rise above twice its mean; measured days do. Source of the curve: Mardia and Jupp,
    Directional Statistics (2000), 3.5.4. Its peak over mean rises with kappa: halving finds it.
    """
    cosines = [math.cos(2 * math.pi * i / DIURNAL_PIECES) for i in range(DIURNAL_PIECES)]

    def peak(kappa: float) -> float:
        return DIURNAL_PIECES / math.fsum(math.exp(kappa * (c - 1)) for c in cosines)

    low, high = 0.0, 5000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if peak(middle) < peak_factor else (low, middle)
    return low
