"""vLLM V0's multi-step scheduling (`--num-scheduler-steps`)."""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import inf

from capplan.simulator.policies.pool import Pool
from capplan.simulator.policies.slot import Chunk
from capplan.simulator.policies.textbook import PrefillFirst


class MultiStep(PrefillFirst):
    """Whole prompts first, but the scheduler runs once in so many decode steps.

    Who arrives meanwhile waits until the group of steps is done, so that the first token is late
    by half a group on average. Requests that end within a group leave at once here; there they
    keep their place until its end. Source: vLLM 0.6, `num_scheduler_steps` of EngineArgs and
    worker/multi_step_model_runner.py.
    """

    name = "multi-step"

    def __init__(self, num_scheduler_steps: int) -> None:
        self._steps = num_scheduler_steps

    def reads_in(self, engine: Pool) -> int:
        if not engine.num_decodes:
            return 0
        return -(engine.step - engine.last_prefill_step) % self._steps

    def plan(self, engine: Pool, *, admitting: bool) -> Items[Chunk]:
        left = self.reads_in(engine)
        if left:
            self.hold = left
            return ()
        self.hold = inf
        return super().plan(engine, admitting=admitting)
