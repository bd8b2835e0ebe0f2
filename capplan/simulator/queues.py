"""Waiting requests: first come first served, or by priority."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush

from capplan.simulator.sequence import Sequence


class FcfsQueue(deque[Sequence]):
    """Arrivals at the end; a preempted request returns to the front."""

    put_back = deque.appendleft


class PriorityQueue:
    """By (priority, arrival, id); preempted requests like all others."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, float, str, int, Sequence]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Sequence]:
        return (entry[-1] for entry in self._heap)

    def __getitem__(self, index: int) -> Sequence:
        return self._heap[index][-1]

    def append(self, seq: Sequence) -> None:
        request = seq.request
        heappush(self._heap, (seq.priority, seq.arrival_s, request.id, seq.index, seq))

    put_back = append

    def popleft(self) -> Sequence:
        return heappop(self._heap)[-1]

    def remove(self, seq: Sequence) -> None:
        self._heap = [entry for entry in self._heap if entry[-1] is not seq]
        self._heap.sort()
