"""How many requests a simulated run has: first those that pass, then those that count."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Mean times in the system that pass before requests count, and that a run lasts at least: the
# number in the system has then long forgotten that it began at zero.
WARMUP_TIMES = 2.5
LEAST_TIMES = 5.0


@dataclass(frozen=True, slots=True)
class RunLength:
    """``in_flight`` in all replicas on average, ``before`` those that count, ``counted`` for the
    percentiles, and at least ``lasting`` in all; never above ``most``."""

    in_flight: float
    before: int
    counted: int
    lasting: int
    most: int | None = None

    @classmethod
    def of(
        cls, in_flight: float, counted: int, *, start: int = 0, most: int | None = None
    ) -> RunLength:
        """``start`` pass before any count, beside the stays."""
        before = math.ceil(WARMUP_TIMES * in_flight) + start
        return cls(in_flight, before, counted, math.ceil(LEAST_TIMES * in_flight), most)

    @property
    def total(self) -> int:
        total = max(self.before + self.counted, self.lasting)
        return total if self.most is None else min(total, self.most)

    @property
    def warmup(self) -> int:
        """As many as pass in a run that was cut, too: half of it at most."""
        return min(self.before, self.total // 2)
