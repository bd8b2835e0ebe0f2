"""A deployment simplified for a search: one kind of KV and current rules, so that a point is quick.

The exact scheduler steps request by request where layers keep KV in different ways, which takes a
hundred times as long. For a search the pool counts requests of the planned length, as the groups
hold them, and each decode is taken to have read the mean context of its step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import inf

from capplan.formulas.kv import tokens_held
from capplan.planner.serving import Serving
from capplan.simulator.config import CURRENT, SchedulerConfig
from capplan.simulator.step_time import ChunkSums, StepTime, WindowSum


@dataclass(frozen=True)
class OnePoolServing(Serving):
    """``planned_tokens`` is the length of a finished request."""

    planned_tokens: int = 0

    @cached_property
    def config(self) -> SchedulerConfig:
        exact: SchedulerConfig = Serving.config.func(self)  # type: ignore[attr-defined]
        block = exact.block_size
        each = -(-self.planned_tokens // block)
        most = self.deployment.num_sequences(self.planned_tokens)
        num = min(max(most, 1), 10**6) * each
        # The longest request still fits: what is refused stays the same.
        num = max(num, -(-exact.max_model_len // block)) if most < 2 else num
        return replace(
            exact, num_gpu_blocks=num + 1, kv_groups=(), mamba_cache_mode="none", rules=CURRENT
        )

    @cached_property
    def step_time(self) -> StepTime:  # type: ignore[override]
        return MeanWindows(Serving.step_time.func(self))  # type: ignore[attr-defined]


def simplified(serving: Serving, planned_tokens: int) -> Serving:
    """The same where the quick scheduler covers it already."""
    if serving.scheduler != "vllm-v1" or serving.config.is_plain:
        return serving
    given = {field.name: getattr(serving, field.name) for field in fields(serving)}
    return OnePoolServing(**given, planned_tokens=planned_tokens)


class MeanWindows:
    """A step time that makes the sums of windows itself, from the mean context of the decodes."""

    def __init__(self, exact: StepTime) -> None:
        self._exact = exact
        self._windows = exact.windows
        self.windows: tuple[int, ...] = ()

    def line(
        self,
        num_decodes: int,
        context_tokens: int,
        windows: Sequence[WindowSum] = (),  # noqa: ARG002
    ) -> tuple[float, float, float]:
        sums, limit = self._sums(num_decodes, context_tokens)
        base_s, slope_s, least = self._exact.line(num_decodes, context_tokens, sums)
        return base_s, slope_s, min(limit, least)

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Sequence[ChunkSums],
        windows: Sequence[WindowSum] = (),  # noqa: ARG002
    ) -> float:
        sums, _ = self._sums(num_decodes, context_tokens)
        return self._exact.mixed(num_decodes, context_tokens, chunks, sums)

    def _sums(self, num_decodes: int, context_tokens: int) -> tuple[list[WindowSum], float]:
        """The sums, and the context up to which they grow as they do now."""
        if not num_decodes:
            return [(0, 0) for _ in self._windows], inf
        mean = context_tokens // num_decodes
        sums = [
            (num_decodes * tokens_held(mean, window), num_decodes if mean < window else 0)
            for window in self._windows
        ]
        ahead = [window for window in self._windows if mean < window]
        return sums, num_decodes * min(ahead) if ahead else inf
