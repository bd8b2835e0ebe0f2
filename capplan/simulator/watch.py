"""Being told what ran: the seam from a scheduler's clock to statistics, for runs that ask.

A run without a watch does nothing for it. What comes is sums, a call a stretch or a step, so that
watching costs as little as the counters themselves.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from collections.abc import Set
from typing import Protocol

from capplan.simulator.sequence import NO_STEP, Sequence


class Watch(Protocol):
    """Statistics of one replica. It changes nothing."""

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        """A step of these decodes (a token each) and prefill tokens; says nothing of gaps."""

    def gaps(self, gap_s: float, count: int) -> None:
        """So many output tokens came `gap_s` after the one before of the same request."""

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        num_decodes: int,
        context_tokens: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        """Steps of decodes only: step k takes base + slope * (context + k * decodes).

        Each is a gap of that length for every decode.
        """

    def load(self, time_s: float, num_running: int, num_waiting: int, num_used_blocks: int) -> None:
        """What the replica holds from this time on."""


class CounterWatch:
    """What the counters know of a pass, as a watch wants it.

    A decode that goes on gets a token in every step, so its gap is the step. One that was passed
    over or preempted got its last token when that step began; `_last_token_s` keeps it until the
    next one comes.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._last_token_s: dict[Sequence, float] = {}
        self.load = watch.load

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        decodes: int,
        context: int,
        base_s: float,
        slope_s: float,
        landing: Items[Sequence],
    ) -> None:
        """Steps of decodes only; the first may end somebody's longer gap."""
        if self._last_token_s or any(seq.stops for seq in landing):
            step_s = base_s + slope_s * context
            self.passed(start_s, step_s, decodes, (), frozenset(), (), landing)
            start_s += step_s
            context += decodes
            num_steps -= 1
        if num_steps:
            self._watch.stretch(start_s, num_steps, decodes, context, base_s, slope_s)

    def passed(
        self,
        start_s: float,
        step_s: float,
        decodes: int,
        chunks: Items[tuple[Sequence, int]],
        starved: Set[Sequence],
        preempted: Items[Sequence],
        landing: Items[Sequence],
    ) -> None:
        """One step. Decodes of a request whose stop token is on its way are wasted: no tokens."""
        last, gaps = self._last_token_s, self._watch.gaps
        if landing:
            wasted = [s for s in landing if s.stops and s.last_step != NO_STEP]
            decodes -= len([s for s in wasted if s not in starved])
        end_s, late, prefill = start_s + step_s, 0, 0
        for seq, tokens in chunks:
            prefill += tokens
            if last and seq in last and seq.computed == seq.target:
                gaps(end_s - last.pop(seq), 1)
        for seq in [*last]:
            if seq.finished:
                del last[seq]
            elif seq.last_step != NO_STEP and seq not in starved:
                gaps(end_s - last.pop(seq), 1)
                late += 1
        self.interrupted(start_s, starved)
        self.interrupted(start_s, preempted)
        self._watch.step(start_s, step_s, decodes, prefill)
        if decodes > late:
            gaps(step_s, decodes - late)

    def interrupted(self, start_s: float, requests: Items[Sequence] | Set[Sequence]) -> None:
        """Requests that get nothing from the step that starts now."""
        for seq in requests:
            if (seq.outputs or seq.last_step != NO_STEP) and not seq.landing:
                self._last_token_s.setdefault(seq, start_s)
