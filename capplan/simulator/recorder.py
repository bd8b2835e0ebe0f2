"""Step records as the recorded runs of the engine have them, for comparison and inspection."""

from __future__ import annotations

from collections.abc import Sequence as Items
from collections.abc import Set
from typing import Any

from capplan.simulator.sequence import NO_STEP, Sequence
from capplan.simulator.state import ReplicaState


class Recorder:
    """Expands what the counters did into what every request got. It changes nothing."""

    def __init__(self, *, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.steps: list[dict[str, Any]] = []
        self.num_stale = self.num_wasted_tokens = 0
        # Steps whose result is not taken in: (record, [(request, life, tokens, samples)]).
        self._open: list[tuple[dict[str, Any], list[tuple[Sequence, int, int, bool]]]] = []
        self._closed: dict[str, Any] | None = None

    def _add(
        self,
        replica: ReplicaState,
        times: tuple[float, float, float],
        got: list[tuple[Sequence, int]],
        preempted: Items[Sequence],
        free: int,
    ) -> dict[str, Any]:
        now, start, dt = times
        admitted = {
            s.request.id: s.hits[-1] for s, _ in got if s.admission > replica.last_in_prompt
        }
        record: dict[str, Any] = {"ts": now} if self.asynchronous else {}
        record |= {
            "t": start,
            "dt": dt,
            "sched": {s.request.id: tokens for s, tokens in got},
            "admit": admitted,
            "pre": [s.request.id for s in preempted],
            "fin": [],
            "run": len(replica.running),
            "wait": len(replica.waiting),
            "free": free,
            "free_end": free,
        }
        if self.asynchronous:
            record |= {"out": [], "stale": [], "waste": []}
        self.steps.append(record)
        return record

    def empty(
        self, replica: ReplicaState, now: float, start: float, preempted: Items[Sequence]
    ) -> None:
        """A pass that scheduled nothing."""
        self._add(replica, (now, start, 0.0), [], preempted, replica.free)

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
        """A pass that scheduled something; the counters have not moved on yet."""
        wants = dict(chunks)
        got, open_ = [], []
        for seq in replica.running:
            if seq.last_step == NO_STEP:
                tokens, samples = wants.get(seq, 0), seq.computed == seq.target
            else:
                tokens = 0 if seq in starved or (seq.landing and not seq.stops) else 1
                samples = True
            if tokens:
                got.append((seq, tokens))
                open_.append((seq, seq.num_preemptions, tokens, samples))
        record = self._add(replica, (now, start, dt), got, preempted, replica.free)
        self._open.append((record, open_))

    def stretch(
        self, replica: ReplicaState, first: int, steps: int, now: float, start: float, computed: int
    ) -> None:
        """Steps of decodes only, from step `first` on: the same sums once more, one by one."""
        going = [s for s in replica.running if not s.landing or s.stops]
        free = replica.free
        for step in range(first, first + steps):
            free -= replica.opening[step % replica.block_size]
            computed += len(going)
            base, slope, _ = replica.step_time.line(len(going), computed)
            dt = base + slope * computed
            got = [(seq, 1) for seq in going]
            record = self._add(replica, (now, start, dt), got, [], free)
            self._open.append((record, [(s, s.num_preemptions, 1, True) for s in going]))
            now = start if self.asynchronous else start + dt
            start += dt
            if step < first + steps - 1 and len(self._open) > self.asynchronous:
                self._close([], free)

    def close(self, finished: list[Sequence], replica: ReplicaState) -> None:
        """The result of the oldest step is taken in."""
        if self._open:
            self._close(finished, replica.free)

    def _close(self, finished: list[Sequence], free: int) -> None:
        record, scheduled = self._open.pop(0)
        record["fin"] = [s.request.id for s in finished]
        record["free_end"] = free
        self._closed = record
        if not self.asynchronous:
            return
        for seq, life, tokens, samples in scheduled:
            if seq.finished:
                record["waste"].append(seq.request.id)
                self.num_wasted_tokens += tokens
                continue
            if life != seq.num_preemptions:
                record["stale"].append(seq.request.id)
                self.num_stale += 1
            if samples:
                record["out"].append(seq.request.id)

    def released(self, replica: ReplicaState) -> None:
        """The blocks of the requests that finished are free."""
        if self._closed is not None:
            self._closed["free_end"] = replica.free
