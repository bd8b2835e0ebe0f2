"""Request lengths of a question: a list, or a distribution taken at its quantiles."""

from __future__ import annotations

from capplan.errors import CapplanError, QuantityError
from capplan.specs import lengths as specs
from capplan.specs.lengths import Empirical, Fixed, Lengths

NUM_QUANTILES = 1000


def parse_lengths(text: str) -> tuple[int, ...]:
    """Lengths in tokens: a list as it is, a distribution at 1,000 even quantiles.

    Raises CapplanError.

    >>> parse_lengths("35,12,67")
    (35, 12, 67)
    >>> sum(parse_lengths("lognormal:1024,0.8")) // 1000 in range(1000, 1030)
    True
    """
    try:
        return quantiles(specs.parse_lengths(text))
    except QuantityError as error:
        raise CapplanError(f"--lengths: {error.message}", hint=error.hint) from None


def quantiles(lengths: Lengths) -> tuple[int, ...]:
    """The lengths themselves where they are a list."""
    shape = lengths.shape
    if isinstance(shape, Empirical) and shape.weights is None:
        return shape.lengths
    if isinstance(shape, Fixed):
        return (shape.tokens,)
    shares = [(i + 0.5) / NUM_QUANTILES for i in range(NUM_QUANTILES)]
    return tuple(lengths.quantiles(shares))
