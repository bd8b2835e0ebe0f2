"""Tells a `watch.Watch` of the gaps between tokens where steps of prompts stall the decodes."""

from __future__ import annotations

from collections.abc import Sequence as Items

from capplan.simulator.policies.slot import Slot
from capplan.simulator.watch import Watch


class GapWatch:
    """Who got his last token when.

    All decodes got theirs with the last step that served them, at `last_s`; but those that began
    since, in steps of prompts only, got it when they began.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.load = watch.load
        self.last_s = 0.0
        self._fresh: dict[Slot, float] = {}  # when they began

    def prompts(self, start_s: float, step_s: float, served: int, tokens: int) -> None:
        """A step with prompts."""
        self._watch.step(start_s, step_s, served, tokens)
        if served:
            self._ended(start_s, step_s, served)

    def began(self, at_s: float, requests: Items[Slot], *, together: bool) -> None:
        """Decodes got their first token; `together`: all the others got one as well."""
        if together:
            self.last_s = at_s
        else:
            self._fresh.update(dict.fromkeys(requests, at_s))

    def resumed(self, gap_s: float) -> None:
        """A request goes on after an eviction."""
        self._watch.gaps(gap_s, 1)

    def left(self, seq: Slot) -> float:
        """A decode leaves between two of its tokens; when was the last one?"""
        return self._fresh.pop(seq, self.last_s)

    def stretch(
        self,
        start_s: float,
        end_s: float,
        num_steps: int,
        decodes: int,
        ghosts: int,
        context: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        """Steps of decodes only, up to end_s: step k takes base + slope * (context + k * decodes).

        The ghosts among them compute padding and get no tokens.
        """
        if self._fresh or start_s > self.last_s:
            step_s = base_s + slope_s * context
            self._watch.step(start_s, step_s, decodes - ghosts, 0)
            self._ended(start_s, step_s, decodes - ghosts)
            start_s += step_s
            context += decodes
            num_steps -= 1
        real = decodes - ghosts
        if num_steps and real:
            # The same times, with the growth of the ghosts' context in the slope.
            steeper = slope_s * decodes / real if ghosts else slope_s
            base_s -= (steeper - slope_s) * context
            self._watch.stretch(start_s, num_steps, real, context, base_s, steeper)
        self.last_s = end_s

    def _ended(self, start_s: float, step_s: float, served: int) -> None:
        """A step that served all decodes; it may end longer gaps."""
        end_s, gaps, fresh = start_s + step_s, self._watch.gaps, self._fresh
        if served > len(fresh):
            gaps(end_s - self.last_s if start_s > self.last_s else step_s, served - len(fresh))
        for at_s in fresh.values():
            gaps(end_s - at_s, 1)
        fresh.clear()
        self.last_s = end_s
