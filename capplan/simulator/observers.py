"""Those who are told what happens in every pass: they change nothing."""

from __future__ import annotations

from collections.abc import Sequence as Items
from collections.abc import Set
from typing import Any, Protocol

from capplan.simulator.sequence import Sequence
from capplan.simulator.step_time import ChunkSums
from capplan.simulator.watch import CounterWatch

ReplicaState = Any  # of `state`, which holds the observers


class StepObserver(Protocol):
    """Wants every step of every request; see `recorder`."""

    def empty(
        self, replica: ReplicaState, now: float, start: float, preempted: Items[Sequence]
    ) -> None:
        """A pass scheduled nothing."""

    def executed(
        self,
        replica: ReplicaState,
        now: float,
        start: float,
        dt: float,
        chunks: list[tuple[Sequence, int]],
        starved: Set[Sequence],
        preempted: Items[Sequence],
    ) -> None:
        """A pass scheduled something; the counters have not moved on yet."""

    def stretch(
        self, replica: ReplicaState, first: int, steps: int, now: float, start: float, computed: int
    ) -> None:
        """`steps` steps of decodes only, from step `first` on."""

    def close(self, finished: list[Sequence], replica: ReplicaState) -> None:
        """The result of the oldest step is taken in."""

    def released(self, replica: ReplicaState) -> None:
        """The blocks of the requests that finished are free."""


class Observers:
    """What the loop calls: a recorder of steps, a watch for statistics, or both."""

    def __init__(self, recorder: StepObserver | None, watch: CounterWatch | None) -> None:
        self._recorder, self._watch = recorder, watch

    def line(
        self,
        start: float,
        steps: int,
        decodes: int,
        context: int,
        base: float,
        slope: float,
        landing: Items[Sequence],
    ) -> None:
        """Part of a stretch: step k takes base + slope * (context + k * decodes)."""
        if self._watch:
            self._watch.stretch(start, steps, decodes, context, base, slope, landing)

    def stretch(
        self,
        replica: ReplicaState,
        steps: tuple[int, int],
        times: tuple[float, float, float],
        computed: int,
        free: int,
    ) -> None:
        """(first, number) of steps; (now, start) of the first and the end of the last; tokens that
        the decodes had computed and blocks that were free before."""
        if self._recorder:
            after, replica.free = replica.free, free
            self._recorder.stretch(replica, *steps, *times[:2], computed)
            replica.free = after
        self._load(replica, times[2])

    def executed(
        self,
        replica: ReplicaState,
        times: tuple[float, float, float],
        served: int,
        prompts: Items[Sequence],
        sums: Items[ChunkSums],
        starved: Set[Sequence],
        preempted: Items[Sequence],
        landing: Items[Sequence],
    ) -> None:
        """A pass scheduled something: (now, start, seconds), decodes and prompts served."""
        chunks = [(seq, want) for seq, (want, _) in zip(prompts, sums, strict=True)]
        if self._recorder:
            self._recorder.executed(replica, *times, chunks, starved, preempted)
        if self._watch:
            self._watch.passed(*times[1:], served, chunks, starved, preempted, landing)
        self._load(replica, times[1])

    def nothing(
        self,
        replica: ReplicaState,
        now: float,
        start: float,
        preempted: Items[Sequence],
        *,
        counts: bool,
    ) -> None:
        """A pass scheduled nothing; does it count as one?"""
        if self._recorder and counts:
            self._recorder.empty(replica, now, start, preempted)
        if self._watch:
            self._watch.interrupted(start, preempted)
        self._load(replica, start)

    def taken_in(self, replica: ReplicaState, finished: list[Sequence]) -> None:
        """The result of the oldest step is taken in; `released` tells when they have left."""
        if self._recorder:
            self._recorder.close(finished, replica)

    def released(self, replica: ReplicaState) -> None:
        if self._recorder:
            self._recorder.released(replica)

    def idle(self, start: float) -> None:
        """Nobody is there from now on."""
        if self._watch:
            self._watch.load(start, 0, 0, 0)

    def _load(self, replica: ReplicaState, time_s: float) -> None:
        if self._watch:
            running, waiting = len(replica.running), len(replica.waiting)
            self._watch.load(time_s, running, waiting, replica.num_used_blocks)
