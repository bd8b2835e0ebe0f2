"""What runs are measured against, and the part of each that counts."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from capplan.simulator.latencies import Section
from capplan.simulator.requests import RequestRecord
from capplan.simulator.run_data import RunData
from capplan.simulator.step_statistics import Totals

NUM_SECTIONS = 10


@dataclass(frozen=True, slots=True)
class Limit:
    key: str  # ttft | tpot | itl | e2e
    limit_s: float
    percentile: float


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a run is measured against.

    ``stationary`` traffic goes on as it began: the start is cut until it has settled, and rates
    are those up to the last arrival. Otherwise (a trace, a burst) every request counts, and rates
    are over the whole run.
    """

    limits: tuple[Limit, ...]
    percentiles: tuple[float, ...]
    goodput_fraction: float | None
    warmup_s: float | None  # None: found by MSER where the traffic is stationary
    stationary: bool
    num_gpus: int
    max_num_seqs: int
    max_num_batched_tokens: int
    usable_blocks: int


@dataclass(frozen=True)
class Window:
    """One run and the part of it that counts."""

    run: RunData
    start_s: float
    end_s: float

    @property
    def elapsed_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def loaded_s(self) -> tuple[float, float]:
        """Up to the last arrival: what comes after only drains."""
        last_s = self.run.last_arrival_s
        return (self.start_s, last_s) if last_s > self.start_s else (self.start_s, self.end_s)

    @cached_property
    def records(self) -> list[RequestRecord]:
        return [r for r in self.run.records if r.arrival_s >= self.start_s]

    @property
    def num_failed(self) -> int:
        return len(self.run.failed_at) - bisect_left(self.run.failed_at, self.start_s)

    def totals(self) -> Totals:
        """Over all replicas."""
        parts = [s.window(self.start_s, self.end_s) for s in self.run.statistics]
        return Totals(
            self.elapsed_s, *(sum(column) for column in list(zip(*parts, strict=True))[1:])
        )

    def section(self, start_s: float, end_s: float, records: Sequence[RequestRecord]) -> Section:
        parts = [s.gap_sample.within(start_s, end_s) for s in self.run.statistics]
        gaps = parts[0]
        for part in parts[1:]:
            gaps.extend(part)
        return Section(records, gaps)


def window_of(run: RunData, yardstick: Yardstick) -> Window:
    """The part of a run that counts."""
    if not yardstick.stationary:
        return Window(run, max(yardstick.warmup_s or 0.0, run.measured_from_s), run.end_s)
    start_s = run.settled_s if yardstick.warmup_s is None else yardstick.warmup_s
    start_s = max(start_s, run.measured_from_s)
    end_s = run.last_arrival_s
    # Requests that all come at once, or before the first of them is answered, have no steady
    # state: the whole run counts.
    settles = any(start_s <= record.finish_s <= end_s for record in run.records)
    return Window(run, start_s, end_s) if settles else Window(run, 0.0, run.end_s)


def sections_of(windows: Sequence[Window]) -> list[Section]:
    """Replications, or ten stretches of one run with as many requests each."""
    if len(windows) > 1:
        return [w.section(w.start_s, w.run.end_s, w.records) for w in windows]
    (window,) = windows
    records = window.records
    if len(records) < 2 * NUM_SECTIONS:
        return [window.section(window.start_s, window.run.end_s, records)]
    cuts = [i * len(records) // NUM_SECTIONS for i in range(NUM_SECTIONS + 1)]
    found = []
    for i in range(NUM_SECTIONS):
        part = records[cuts[i] : cuts[i + 1]]
        last = i == NUM_SECTIONS - 1
        # Half-open: a gap belongs to one section.
        end_s = window.run.end_s if last else math.nextafter(records[cuts[i + 1]].arrival_s, 0.0)
        start_s = part[0].arrival_s if i else window.start_s
        found.append(window.section(start_s, end_s, part))
    return found


def rate_of(amount: float, elapsed_s: float) -> float:
    """Per second; 0 where no time passed."""
    return amount / elapsed_s if elapsed_s > 0 else 0.0
