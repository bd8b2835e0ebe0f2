"""What a deployment promises: limits at percentiles, for all requests or for one class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from capplan.errors import UnsupportedError
from capplan.formulas.statistics import samples_needed
from capplan.planner.sizing.demand import Demand
from capplan.simulator.yardstick import Limit
from capplan.specs.slos import SloLimit


@dataclass(frozen=True, slots=True)
class ClassLimit:
    """``kind`` is the name of a class of the traffic; None: every request counts."""

    limit: Limit
    kind: str | None = None


def class_limits(demand: Demand) -> tuple[ClassLimit, ...]:
    """What is promised to single classes of the traffic."""
    found: list[ClassLimit] = []
    for part in demand.parts:
        if part.slos is None:
            continue
        if part.slos.itl is not None:
            raise UnsupportedError(
                f"the ITL of {part.name} alone is not known: gaps are those of all requests",
                hint="promise it for the whole plan: `slos: {itl: ...}`",
            )
        for key in ("ttft", "tpot", "e2e"):
            limit: SloLimit | None = getattr(part.slos, key)
            if limit is not None:
                percentile = limit.percentile or part.slos.percentile
                found.append(ClassLimit(Limit(key, limit.limit, percentile), part.name))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Promise:
    """``goodput_fraction``: the least share of requests that meet all limits of a request."""

    limits: tuple[ClassLimit, ...]
    goodput_fraction: float | None = None

    @property
    def asks_for_gaps(self) -> bool:
        """Between tokens: a limit on ITL."""
        return any(each.limit.key == "itl" for each in self.limits)

    def samples_needed(self, shares: Mapping[str, float]) -> int:
        """Requests with which ten lie beyond the highest percentile, of each class its own.

        ``shares`` of the traffic by class.
        """
        return max(
            math.ceil(
                samples_needed(each.limit.percentile)
                / (1.0 if each.kind is None else shares[each.kind])
            )
            for each in self.limits
        )
