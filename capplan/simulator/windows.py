"""What decodes read within attention windows, as counters.

A layer with a window of w tokens reads min(context, w) of each request. A decode grows until its
context reaches w, at a step that is known, and reads w from then on. So for each window two
numbers are kept, how many decodes grow and the tokens that these have computed, and a calendar of
the steps at which one has filled its window.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from heapq import heappop, heappush

from capplan.simulator.sequence import Sequence
from capplan.simulator.step_time import ChunkSums, StepTime, WindowSum

NEVER = 1 << 60


class WindowCounters:
    """The decodes of one replica, by window; also the step time, told of these sums."""

    def __init__(self, step_time: StepTime) -> None:
        self._time = step_time
        self.windows = step_time.windows
        self._growing = [0] * len(self.windows)
        self._computed = [0] * len(self.windows)  # by those that grow, before `_step`
        self._step = 0
        # (step before which it has computed w tokens, admission, window, decode). Entries of
        # decodes that have left are no longer valid: `_admissions` tells.
        self._calendar: list[tuple[int, int, int, Sequence]] = []
        self._admissions: dict[Sequence, int] = {}  # of those that grow in some window
        self._served: tuple[WindowSum, ...] | None = None

    def add(self, seq: Sequence, computed: int) -> None:
        """A decode that has computed so many tokens before the next step."""
        for index, window in enumerate(self.windows):
            if computed < window:
                self._growing[index] += 1
                self._computed[index] += computed
                self._admissions[seq] = seq.admission
                full = self._step + window - computed
                heappush(self._calendar, (full, seq.admission, index, seq))

    def remove(self, seq: Sequence, computed: int) -> None:
        """A decode leaves, with so many tokens computed."""
        if self._admissions.pop(seq, None) is None:
            return
        for index, window in enumerate(self.windows):
            if computed < window:
                self._growing[index] -= 1
                self._computed[index] -= computed

    def pass_by(self, computed: int) -> None:
        """The step under way does not serve a decode of so many computed tokens."""
        for index, window in enumerate(self.windows):
            if computed < window:
                self._computed[index] -= 1  # `advance` counts it in

    def advance(self, steps: int) -> None:
        """Steps have served all decodes, but those passed by; at most `until_full()` of them."""
        self._step = step = self._step + steps
        self._served = None
        for index, growing in enumerate(self._growing):
            self._computed[index] += growing * steps
        calendar = self._calendar
        while calendar and calendar[0][0] <= step:
            _, admission, index, seq = heappop(calendar)
            if self._admissions.get(seq) != admission:
                continue
            computed, window = step + seq.offset, self.windows[index]
            if computed < window:  # passed by meanwhile
                heappush(calendar, (step + window - computed, admission, index, seq))
            else:
                self._growing[index] -= 1
                self._computed[index] -= computed

    def until_full(self) -> int:
        """Steps that a stretch may have."""
        return self._calendar[0][0] - self._step if self._calendar else NEVER

    def serve_only(self, contexts: Items[int]) -> None:
        """The next step serves decodes with these contexts at its end, and no others."""
        self._served = window_sums(self.windows, contexts)

    def sums(self, num_decodes: int) -> Items[WindowSum]:
        """Of the next step; `num_decodes` is the number of all decodes."""
        if self._served is not None:
            return self._served
        rows = zip(self.windows, self._growing, self._computed, strict=True)
        return [(read + grow + w * (num_decodes - grow), grow) for w, grow, read in rows]

    # The step time, as one without windows.

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]:
        return self._time.line(num_decodes, context_tokens, self.sums(num_decodes))

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Items[ChunkSums]) -> float:
        return self._time.mixed(num_decodes, context_tokens, chunks, self.sums(num_decodes))


def window_sums(windows: Items[int], contexts: Iterable[int]) -> tuple[WindowSum, ...]:
    """From every context at the end of the step. Growth is not told: it is for this step only."""
    contexts = list(contexts)
    return tuple([(sum([min(c, w) for c in contexts]), 0) for w in windows])
