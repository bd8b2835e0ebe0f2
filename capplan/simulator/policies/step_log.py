"""Every step of a stretch of time, one by one, and whose prompt it computed."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import NamedTuple

from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.slot import Chunk


class LoggedStep(NamedTuple):
    """``num_decodes`` 0: the decodes that there are get nothing from it."""

    start_s: float
    end_s: float
    num_decodes: int
    chunks: dict[str, int]  # prompt tokens by request


class StepLog:
    """A `watch.Watch` that keeps the steps which touch `from_s` to `until_s`."""

    def __init__(self, from_s: float, until_s: float) -> None:
        self.from_s, self.until_s = from_s, until_s
        self.steps: list[LoggedStep] = []

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        if not prefill_tokens:  # those with prompts are told by the replica, with their chunks
            self.add(LoggedStep(start_s, start_s + step_s, num_decodes, {}))

    def gaps(self, gap_s: float, count: int) -> None:
        pass

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        num_decodes: int,
        context_tokens: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        for _ in range(num_steps):
            if start_s >= self.until_s:
                return
            end_s = start_s + base_s + slope_s * context_tokens
            self.add(LoggedStep(start_s, end_s, num_decodes, {}))
            start_s, context_tokens = end_s, context_tokens + num_decodes

    def load(self, time_s: float, num_running: int, num_waiting: int, num_used_blocks: int) -> None:
        pass

    def add(self, step: LoggedStep) -> None:
        if step.end_s > self.from_s and step.start_s < self.until_s:
            self.steps.append(step)


class LoggedReplica(PolicyReplica):
    """The same replica; its `log` learns whose prompts a step computes."""

    log: StepLog

    def _compute_prompts(self, chunks: Items[Chunk]) -> None:
        start_s = self.start
        served = self.num_decodes if self.policy.mixes else 0
        super()._compute_prompts(chunks)
        got = {seq.request.id: tokens for seq, tokens in chunks}
        self.log.add(LoggedStep(start_s, self.start, served, got))
