"""What one replica did over time: integrals at checkpoints, and the gaps between tokens."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import NamedTuple

from capplan.simulator.gap_sample import GapSample

MAX_CHECKPOINTS = 50_000


class Totals(NamedTuple):
    """Integrals from the start of a run, or over a window of it."""

    time_s: float
    busy_s: float = 0.0
    num_steps: float = 0.0
    num_decodes: float = 0.0  # decode tokens, one a decode and step
    prefill_tokens: float = 0.0
    running_s: float = 0.0  # area under the number of running requests
    waiting_s: float = 0.0
    block_s: float = 0.0

    def minus(self, other: Totals) -> Totals:
        return Totals(*(a - b for a, b in zip(self, other, strict=True)))


new_totals = tuple.__new__
_TIME = itemgetter(0)


class StepStatistics:
    """A watch that keeps sums: what happened up to each checkpoint, exactly.

    A long run thins its checkpoints out; integrals between those that stay are still exact.
    """

    def __init__(self) -> None:
        self.gap_sample = GapSample()
        self.max_running = self.max_waiting = self.max_used_blocks = 0
        self._checkpoints = [Totals(0.0)]
        self._stride = self._skipped = 1
        self._at_s = 0.0  # the step that was told last
        self._busy_s = 0.0
        self._steps = self._decodes = self._prefill = 0
        self._running_s = self._waiting_s = self._block_s = 0.0
        self._now_s = 0.0
        self._running = self._waiting = self._used = 0

    # As a watch.

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        self._at_s = start_s
        self._busy_s += step_s
        self._steps += 1
        self._decodes += num_decodes
        self._prefill += prefill_tokens

    def gaps(self, gap_s: float, count: int) -> None:
        self.gap_sample.add(self._at_s, gap_s, 0.0, 1, count)

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        num_decodes: int,
        context_tokens: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        first_s, more_s = base_s + slope_s * context_tokens, slope_s * num_decodes
        self._at_s = start_s
        self._busy_s += num_steps * first_s + more_s * (num_steps * (num_steps - 1) // 2)
        self._steps += num_steps
        self._decodes += num_steps * num_decodes
        self.gap_sample.add(start_s, first_s, more_s, num_steps, num_decodes)

    def load(self, time_s: float, num_running: int, num_waiting: int, num_used_blocks: int) -> None:
        # Between two passes nothing is admitted or released, but decodes open blocks and
        # requests arrive: the mean of both ends.
        elapsed = time_s - self._now_s
        self._running_s += elapsed * self._running
        self._waiting_s += elapsed * (self._waiting + num_waiting) / 2
        self._block_s += elapsed * (self._used + num_used_blocks) / 2
        self._now_s = time_s
        self._running, self._waiting, self._used = num_running, num_waiting, num_used_blocks
        if num_running > self.max_running:
            self.max_running = num_running
        if num_waiting > self.max_waiting:
            self.max_waiting = num_waiting
        if num_used_blocks > self.max_used_blocks:
            self.max_used_blocks = num_used_blocks
        self._skipped += 1
        if self._skipped >= self._stride:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._skipped = 0
        self._checkpoints.append(self.totals)
        if len(self._checkpoints) > MAX_CHECKPOINTS:
            del self._checkpoints[1::2]
            self._stride *= 2

    # What was seen.

    @property
    def totals(self) -> Totals:
        # Not by the class's own __new__: there is one a pass.
        return new_totals(
            Totals,
            (
                self._now_s,
                self._busy_s,
                self._steps,
                self._decodes,
                self._prefill,
                self._running_s,
                self._waiting_s,
                self._block_s,
            ),
        )

    def until(self, time_s: float) -> Totals:
        """Integrals up to a time, between checkpoints in proportion."""
        points = self._checkpoints
        at = bisect_right(points, time_s, key=_TIME)
        if at == len(points):
            return self.totals._replace(time_s=time_s)
        before, after = points[at - 1], points[at]
        share = (time_s - before.time_s) / (after.time_s - before.time_s)
        return Totals(*(b + share * (a - b) for a, b in zip(after, before, strict=True)))

    def window(self, start_s: float, end_s: float) -> Totals:
        return self.until(end_s).minus(self.until(start_s))
