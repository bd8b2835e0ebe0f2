"""Request lengths as people give them: one number, a list, or a distribution, with a cut.

A distribution is its quantile function: questions take even quantiles (the same question always
gives the same answer), simulations take the quantiles of uniform random numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import NormalDist

from capplan.errors import QuantityError, did_you_mean
from capplan.formulas.limited_means import (
    lognormal_limited_mean,
    lognormal_parameters,
    normal_limited_mean,
    uniform_limited_mean,
)
from capplan.units import format_tokens, parse_fraction, parse_tokens

MAX_LENGTHS = 100_000
MAX_TOKENS = 10**9
SHAPES = ("fixed", "uniform", "range", "normal", "lognormal")
EXAMPLES = {
    "fixed": "fixed:1024",
    "uniform": "uniform:64-2048",
    "range": "range:1024,0.5",
    "normal": "normal:1024,200",
    "lognormal": "lognormal:1024,0.8",
}
_INV_CDF = NormalDist().inv_cdf
_LEAST_SHARE = 2.0**-60  # stands in for 0, whose quantile may be infinite
_LONG_SHARE = 0.9995  # of what a distribution may reach; the rest is cut


@dataclass(frozen=True, slots=True)
class Fixed:
    tokens: int

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        return [self.tokens for _ in shares]

    def limited_mean(self, limit: float) -> float:
        return min(self.tokens, limit)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Whole numbers from `low` to `high`, each as likely as the other."""

    low: int
    high: int

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        low, width = self.low, self.high - self.low + 1
        return [low + int(share * width) for share in shares]

    def limited_mean(self, limit: float) -> float:
        return uniform_limited_mean(self.low, self.high, limit)


@dataclass(frozen=True, slots=True)
class Normal:
    mean: float
    deviation: float

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        mean, deviation, inverse = self.mean, self.deviation, _INV_CDF
        return [round(mean + deviation * inverse(share)) for share in _open(shares)]

    def limited_mean(self, limit: float) -> float:
        return normal_limited_mean(self.mean, self.deviation, limit)


@dataclass(frozen=True, slots=True)
class Lognormal:
    mean: float
    cv: float

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        mu, sigma = lognormal_parameters(self.mean, self.cv)
        inverse, exp = _INV_CDF, math.exp
        return [round(exp(mu + sigma * inverse(share))) for share in _open(shares)]

    def limited_mean(self, limit: float) -> float:
        return lognormal_limited_mean(self.mean, self.cv, limit)


@dataclass(frozen=True)
class Empirical:
    """Lengths that were seen, each with its weight; in the order in which they were given."""

    lengths: tuple[int, ...]
    weights: tuple[float, ...] | None = None

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        ordered, ends = self._ranked
        total, last = ends[-1], len(ends) - 1
        return [ordered[min(last, bisect_right(ends, share * total))] for share in shares]

    @cached_property
    def _ranked(self) -> tuple[list[int], list[float]]:
        """The lengths from short to long, and the weight up to and with each."""
        weights = self.weights or (1.0,) * len(self.lengths)
        pairs = sorted(zip(self.lengths, weights, strict=True))
        return [length for length, _ in pairs], list(accumulate(weight for _, weight in pairs))

    def limited_mean(self, limit: float) -> float:
        weights = self.weights or (1,) * len(self.lengths)
        parts = (w * min(length, limit) for length, w in zip(self.lengths, weights, strict=True))
        return math.fsum(parts) / math.fsum(weights)


@dataclass(frozen=True, slots=True)
class Scaled:
    """Another shape, every length of it times `factor`."""

    shape: Fixed | Uniform | Normal | Lognormal | Empirical
    factor: float

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        return [max(1, round(tokens * self.factor)) for tokens in self.shape.quantiles(shares)]

    def limited_mean(self, limit: float) -> float:
        return self.factor * self.shape.limited_mean(limit / self.factor)


Shape = Fixed | Uniform | Normal | Lognormal | Empirical | Scaled


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths in tokens, cut at `least` and `most`; `text` as it was given."""

    text: str
    shape: Shape
    least: int = 1
    most: int = MAX_TOKENS

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        """The lengths at these shares, 0 <= share < 1."""
        least, most = self.least, self.most
        found = self.shape.quantiles(shares)
        if isinstance(self.shape, (Fixed, Uniform, Empirical)) and least == 1:
            return found if most == MAX_TOKENS else [min(most, tokens) for tokens in found]
        return [least if n < least else most if n > most else n for n in found]

    @property
    def mean_tokens(self) -> float:
        """Of the cut distribution, before rounding."""
        return self.limited_mean(self.most)

    def limited_mean(self, limit: float) -> float:
        """E[min(X, limit)] of the cut distribution X.

        Below `most` it is E[min(S, limit)] + least - E[min(S, least)] of the shape S.
        """
        limit = min(limit, self.most)
        if self.least >= limit:
            return limit
        limited: Callable[[float], float] = self.shape.limited_mean
        return limited(limit) + self.least - limited(self.least)


def scaled(lengths: Lengths, factor: float) -> Lengths:
    """Every length times a factor, the cut too.

    >>> scaled(parse_lengths("1000"), 1.2).mean_tokens
    1200.0
    """
    shape = lengths.shape
    least = max(1, round(lengths.least * factor))
    most = lengths.most if lengths.most == MAX_TOKENS else round(lengths.most * factor)
    if isinstance(shape, Scaled):
        return Lengths(lengths.text, Scaled(shape.shape, shape.factor * factor), least, most)
    return Lengths(lengths.text, Scaled(shape, factor), least, most)


def _open(shares: Iterable[float]) -> Iterable[float]:
    return [share or _LEAST_SHARE for share in shares]


def parse_lengths(text: str) -> Lengths:
    """``35,12,67`` is a list; ``fixed:1024``, ``uniform:64-2048``, ``range:1024,0.5`` (1024 times
    0.5 to 1.5), ``normal:1024±200`` (or ``normal:1024,200``) and ``lognormal:1024,0.8`` (mean and
    coefficient of variation) are distributions; the last two may end in a cut, ``,16-8192``.

    Raises QuantityError.

    >>> parse_lengths("lognormal:1024,0.8,16-8k").most
    8000
    >>> parse_lengths("range:1000,20%").shape
    Uniform(low=800, high=1200)
    """
    text = text.strip()
    name, colon, rest = text.partition(":")
    if not colon:
        lengths = tuple(parse_tokens(part, positive=True) for part in text.split(","))
        shape: Shape = Fixed(lengths[0]) if len(lengths) == 1 else Empirical(lengths)
        return bounded(Lengths(text, shape))
    name = name.strip()
    if name not in SHAPES:
        raise QuantityError(
            f"`{name[:40]}` is not a distribution of lengths",
            hint=did_you_mean(name[:40], SHAPES) or f"one of: {', '.join(SHAPES)}",
        )
    return bounded(_distribution(text, name, rest))


def bounded(lengths: Lengths) -> Lengths:
    """``lengths``, or QuantityError where they are too many or too long."""
    shape = lengths.shape
    if isinstance(shape, Empirical) and len(shape.lengths) > MAX_LENGTHS:
        raise QuantityError(f"{len(shape.lengths):,} lengths are more than {MAX_LENGTHS:,}")
    longest = shape.quantiles([_LONG_SHARE])[0] if lengths.most == MAX_TOKENS else lengths.most
    if longest > MAX_TOKENS:
        raise QuantityError(
            f"a length of {format_tokens(longest)} tokens is more than {MAX_TOKENS:,}"
        )
    return lengths


def _distribution(text: str, name: str, rest: str) -> Lengths:
    if name == "fixed":
        return Lengths(text, Fixed(parse_tokens(rest, positive=True)))
    if name == "uniform":
        low, high = _pair(name, rest, "-")
        first, last = parse_tokens(low, positive=True), parse_tokens(high, positive=True)
        if last < first:
            raise QuantityError(
                f"`uniform:{first}-{last}` runs backwards", hint=f"write uniform:{last}-{first}"
            )
        return Lengths(text, Uniform(first, last))
    middle, second = _pair(name, rest, "±" if "±" in rest else ",")
    if name == "range":
        tokens, share = parse_tokens(middle, positive=True), parse_fraction(second)
        # As `vllm bench serve --random-range-ratio` rounds; at least one token.
        low_end, high_end = math.floor(tokens * (1 - share)), math.ceil(tokens * (1 + share))
        return Lengths(text, Uniform(max(1, low_end), high_end))
    second, comma, cut = second.partition(",")
    least, most = _cut(cut) if comma else (1, MAX_TOKENS)
    mean = parse_tokens(middle, positive=True)
    if name == "normal":
        return Lengths(text, Normal(mean, parse_tokens(second, positive=True)), least, most)
    return Lengths(text, Lognormal(mean, parse_variation(second)), least, most)


def _pair(name: str, rest: str, separator: str) -> tuple[str, str]:
    first, found, second = rest.partition(separator)
    if not found:
        raise QuantityError(
            f"`{name}:{rest[:40]}` needs two numbers", hint=f"write it like `{EXAMPLES[name]}`"
        )
    return first, second


def _cut(text: str) -> tuple[int, int]:
    """The least and most of ``16-8192``; either may be left out."""
    low, dash, high = text.partition("-")
    if not dash:
        hint = "write the least and the most length, like `16-8192`, `16-` or `-8192`"
        raise QuantityError(f"`{text[:40]}` is not a cut", hint=hint)
    least = parse_tokens(low, positive=True) if low.strip() else 1
    most = parse_tokens(high, positive=True) if high.strip() else MAX_TOKENS
    if most < least:
        raise QuantityError(
            f"the cut `{text[:40]}` runs backwards", hint=f"write {high.strip()}-{low.strip()}"
        )
    return least, most


def parse_variation(text: str) -> float:
    """A coefficient of variation: a share, or a plain number above 1. Raises QuantityError."""
    try:
        value = float(text)
    except ValueError:
        value = parse_fraction(text, positive=True)
    if not 0.001 <= value <= 10:
        raise QuantityError(
            f"a coefficient of variation of `{text[:40]}` is out of range",
            hint="write 0.001 to 10, or fixed:1024 for requests of one length",
        )
    return value
