"""What one simulated run leaves behind, for metrics."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from capplan.formulas.statistics import warmup_batches
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.step_statistics import StepStatistics

MSER_BATCH = 5  # requests


@dataclass
class RunData:
    """One replication. Records in order of finish; statistics and outcomes by replica."""

    records: list[RequestRecord] = field(default_factory=list)
    statistics: list[StepStatistics] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    arrivals: array[float] = field(default_factory=lambda: array("d"))
    interrupted: bool = False

    def noting_arrivals(self, requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            self.arrivals.append(request.arrival_s)
            yield request

    @property
    def last_arrival_s(self) -> float:
        return self.arrivals[-1] if self.arrivals else 0.0

    @cached_property
    def by_arrival(self) -> list[RequestRecord]:
        return sorted(self.records, key=lambda record: record.arrival_s)

    @cached_property
    def finishes(self) -> list[float]:
        return sorted(record.finish_s for record in self.records)

    @property
    def end_s(self) -> float:
        """When the last of those that finished had left."""
        return max(self.finishes[-1] if self.finishes else 0.0, self.last_arrival_s)

    @property
    def num_refused(self) -> int:
        return sum(len(outcome.rejected) for outcome in self.outcomes)

    def present(self, time_s: float) -> int:
        """Requests that have arrived and not left."""
        return bisect_right(self.arrivals, time_s) - bisect_right(self.finishes, time_s)

    def settled_s(self) -> float:
        """The end of the warm-up: MSER over end-to-end times in batches, in order of arrival."""
        times = [record.e2e_s for record in self.by_arrival]
        starts = range(0, len(times) - MSER_BATCH + 1, MSER_BATCH)
        cut = warmup_batches([sum(times[i : i + MSER_BATCH]) / MSER_BATCH for i in starts])
        return self.by_arrival[cut * MSER_BATCH].arrival_s if cut else 0.0
