"""Request lengths as people give them: a list, or a distribution sampled at its quantiles.

Quantiles instead of random draws: the same question always gives the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from capplan.errors import CapplanError, QuantityError, did_you_mean
from capplan.units import format_tokens, parse_fraction, parse_tokens

NUM_QUANTILES = 1000
MAX_LENGTHS = 100_000
MAX_TOKENS = 10**9
_SHAPES = ("fixed", "uniform", "normal", "lognormal")


def parse_lengths(text: str) -> tuple[int, ...]:
    """Lengths in tokens.

    ``35,12,67`` is a list; ``fixed:1024``, ``uniform:64-2048``, ``normal:1024±200`` (or
    ``normal:1024,200``) and ``lognormal:1024,0.8`` (mean and coefficient of variation) are
    distributions, taken at 1,000 even quantiles. Raises CapplanError.

    >>> parse_lengths("35,12,67")
    (35, 12, 67)
    >>> sum(parse_lengths("lognormal:1024,0.8")) // 1000 in range(1000, 1030)
    True
    """
    name, colon, rest = text.partition(":")
    try:
        if not colon:
            return _bounded([parse_tokens(part, positive=True) for part in text.split(",")])
        return _distribution(name.strip(), rest)
    except QuantityError as error:
        raise CapplanError(f"--lengths: {error.message}", hint=error.hint) from None


def _distribution(name: str, rest: str) -> tuple[int, ...]:
    if name not in _SHAPES:
        raise QuantityError(
            f"`{name[:40]}` is not a distribution of lengths",
            hint=did_you_mean(name[:40], _SHAPES) or f"one of: {', '.join(_SHAPES)}",
        )
    if name == "fixed":
        return _bounded([parse_tokens(rest, positive=True)])
    separator = "-" if name == "uniform" else "±" if "±" in rest else ","
    first, found, second = rest.partition(separator)
    if not found:
        example = {"uniform": "uniform:64-2048", "normal": "normal:1024,200"}
        raise QuantityError(
            f"`{name}:{rest[:40]}` needs two numbers",
            hint=f"write it like `{example.get(name, 'lognormal:1024,0.8')}`",
        )
    middle = parse_tokens(first, positive=True)
    return _bounded(_quantiles(_inverse(name, middle, second)))


def _inverse(name: str, first: int, second: str) -> Callable[[float], float]:
    """The quantile function of a distribution."""
    if name == "uniform":
        last = parse_tokens(second, positive=True)
        if last < first:
            raise QuantityError(f"`uniform:{first}-{last}` runs backwards")
        return lambda p: first + p * (last - first)
    if name == "normal":
        deviation = parse_tokens(second, positive=True)
        return NormalDist(first, deviation).inv_cdf
    variation = _variation(second)
    sigma = math.sqrt(math.log1p(variation**2))
    normal = NormalDist(math.log(first) - sigma**2 / 2, sigma)
    return lambda p: math.exp(normal.inv_cdf(p))


def _variation(text: str) -> float:
    """A coefficient of variation: a share, or a plain number above 1."""
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


def _quantiles(inverse: Callable[[float], float]) -> list[int]:
    shares = ((i + 0.5) / NUM_QUANTILES for i in range(NUM_QUANTILES))
    return [max(1, round(inverse(share))) for share in shares]


def _bounded(lengths: list[int]) -> tuple[int, ...]:
    if len(lengths) > MAX_LENGTHS:
        raise QuantityError(f"{len(lengths):,} lengths are more than {MAX_LENGTHS:,}")
    if max(lengths) > MAX_TOKENS:
        longest = format_tokens(max(lengths))
        raise QuantityError(f"a length of {longest} tokens is more than {MAX_TOKENS:,}")
    return tuple(lengths)
