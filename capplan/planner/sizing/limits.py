"""What a deployment promises: limits at percentiles, for all requests or for one class."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.formulas.statistics import samples_needed
from capplan.simulator.yardstick import Limit


@dataclass(frozen=True, slots=True)
class ClassLimit:
    """``kind`` is the name of a class of the traffic; None: every request counts."""

    limit: Limit
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """``goodput_fraction``: the least share of requests that meet all limits of a request."""

    limits: tuple[ClassLimit, ...]
    goodput_fraction: float | None = None

    @property
    def samples_needed(self) -> int:
        """Requests with which ten lie beyond the highest percentile."""
        return max(samples_needed(each.limit.percentile) for each in self.limits)

    def shortest(self, key: str) -> float | None:
        """The tightest limit of one measure over all classes."""
        found = [each.limit.limit_s for each in self.limits if each.limit.key == key]
        return min(found, default=None)
