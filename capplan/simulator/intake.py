"""One process takes requests in: when those that come together reach the engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence


class Intake:
    """An event loop that works ``request_s`` for each request, and passes on what it has taken.

    All requests that have come by the time it is free are taken up as one round. Each of them
    goes on to the tokenizer, and from there to the engine, only when the loop comes round again:
    asyncio runs every task that is ready before it looks for what has become ready since
    (docs.python.org, asyncio-eventloop; asyncio/base_events.py, _run_once). A lone request is
    through after ``request_s``; of a thousand at once all are through after a thousand times
    that, and the engine has stood idle until then.
    """

    def __init__(self, request_s: float) -> None:
        self.request_s = request_s
        self._free_s = 0.0

    def passed_on(self, arrivals_s: Sequence[float]) -> list[float]:
        """When each is through; arrivals in order, after those of the call before."""
        through: list[float] = []
        while len(through) < len(arrivals_s):
            begun = len(through)
            start = max(self._free_s, arrivals_s[begun])
            taken = bisect_right(arrivals_s, start, begun) - begun
            self._free_s = start + self.request_s * taken
            through += [self._free_s] * taken
        return through
