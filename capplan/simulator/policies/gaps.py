"""Times between consecutive tokens of the same request, as a weighted distribution.

Decodes that run together have the same gap, and a stretch of steps has gaps in arithmetic
progression: one entry for all of them, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

# (first gap, difference from step to step, steps, requests)
Progression = tuple[float, float, int, int]


class Gaps:
    """Collects gaps; the sum of weights is tokens - requests."""

    def __init__(self) -> None:
        self.progressions: list[Progression] = []
        self.last_s = 0.0  # end of the last step that gave all decodes of then a token
        # Decodes since then: (when they got their first token, how many).
        self._fresh: list[tuple[float, int]] = []
        self._num_fresh = 0

    @property
    def aligned(self) -> bool:
        """Did every decode get its last token at `last_s`?"""
        return not self._fresh

    def began(self, at_s: float, requests: int, *, together: bool) -> None:
        """Decodes got their first token, in a step that did or did not serve the others."""
        if together:
            self.last_s = at_s
        elif requests:
            self._fresh.append((at_s, requests))
            self._num_fresh += requests

    def resumed(self, gap_s: float) -> None:
        """A request goes on after an eviction."""
        self.progressions.append((gap_s, 0.0, 1, 1))

    def left(self, requests: int) -> None:
        """Requests leave between two of their tokens (eviction, abort): fresh ones are last."""
        while requests and self._fresh:
            at_s, number = self._fresh.pop()
            taken = min(number, requests)
            requests -= taken
            self._num_fresh -= taken
            if number > taken:
                self._fresh.append((at_s, number - taken))

    def ran(
        self, end_s: float, first_end_s: float, step_s: float, slope_s: float, steps: int, num: int
    ) -> None:
        """`num` decodes ran `steps` steps of step_s, step_s + slope_s, ... up to `end_s`."""
        add = self.progressions.append
        if not num:
            return
        old = num - self._num_fresh
        if self._fresh or first_end_s - self.last_s > step_s * 1.0000001:
            if old > 0:
                add((first_end_s - self.last_s, 0.0, 1, old))
            for at_s, requests in self._fresh:
                add((first_end_s - at_s, 0.0, 1, requests))
            self._fresh.clear()
            self._num_fresh = 0
            if steps > 1:
                add((step_s + slope_s, slope_s, steps - 1, num))
        else:
            add((step_s, slope_s, steps, num))
        self.last_s = end_s

    @property
    def longest_s(self) -> float | None:
        """The longest that a running request waited for its next token."""
        ends = [max(d, d + slope * (n - 1)) for d, slope, n, _ in self.progressions]
        return max(ends, default=None)

    @property
    def count(self) -> int:
        return sum(n * requests for _, _, n, requests in self.progressions)

    def percentiles(self, quantiles: Items[float]) -> list[float | None]:
        """The gaps that at least these shares of all gaps do not exceed."""
        weighted: list[tuple[float, int]] = []
        for d, slope, n, requests in self.progressions:
            if n == 1 or not slope:
                weighted.append((d, n * requests))
            else:
                weighted += [(d + slope * k, requests) for k in range(n)]
        weighted.sort()
        total = sum(weight for _, weight in weighted)
        found: list[float | None] = []
        for quantile in quantiles:
            reached, value = 0, None
            for value, weight in weighted:  # noqa: B007
                reached += weight
                if reached >= quantile * total:
                    break
            found.append(value)
        return found
