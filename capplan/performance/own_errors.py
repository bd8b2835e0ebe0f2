"""The errors of a calibration's own runs, and what they make of a shipped band.

A run that the fit has not seen tells how wrong predictions for that very server are. The fewer
such runs there are, the more the shipped table still says: n runs have a share of n / (n + 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from capplan.results.bands import ErrorBand

# Runs whose word the table has beside one's own: as many as its own cells grant to wider kinds.
TABLE_RUNS = 4


@dataclass(frozen=True, slots=True)
class OwnErrors:
    """Measured / predicted of ``num_runs`` left-out runs of one figure at one kind of load."""

    figure: str
    loaded: bool
    num_runs: int
    low_ratio: float
    high_ratio: float


@dataclass(frozen=True, slots=True)
class OwnRuns:
    """``unlike``: in what those runs differ from what is asked; then they narrow nothing."""

    errors: tuple[OwnErrors, ...]
    tps: tuple[int, ...]
    unlike: tuple[str, ...] = ()

    def at_tp(self, tp: int) -> OwnRuns:
        """For a replica of that degree."""
        if tp in self.tps:
            return self
        return replace(self, unlike=(*self.unlike, f"TP {', '.join(map(str, self.tps))}"))

    def band(self, shipped: ErrorBand, loaded: bool) -> ErrorBand:
        """The shipped band drawn towards the own errors; of other servers never narrower."""
        key = (shipped.figure, loaded)
        own = next((one for one in self.errors if (one.figure, one.loaded) == key), None)
        if own is None:
            return shipped
        share = own.num_runs / (own.num_runs + TABLE_RUNS)
        low = _between(shipped.low_ratio, own.low_ratio, share)
        high = _between(shipped.high_ratio, own.high_ratio, share)
        if self.unlike:
            low, high = min(low, shipped.low_ratio), max(high, shipped.high_ratio)
        return replace(
            shipped,
            low_ratio=low,
            high_ratio=high,
            num_own_runs=own.num_runs,
            own_fraction=share,
            own_unlike=", ".join(self.unlike) or None,
        )


def _between(shipped: float, own: float, share: float) -> float:
    """Ratios are drawn together as logarithms."""
    return math.exp(share * math.log(own) + (1 - share) * math.log(shipped))
