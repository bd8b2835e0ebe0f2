"""How long a step takes, asked for in sums: the seam to `capplan.performance`."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import inf
from typing import Protocol

# Prefill tokens given to one request in one step, and the tokens computed before.
ChunkSums = tuple[int, int]


# Positions read within an attention window by all decodes of a step, and how many of these have
# not filled it: by so much the sum grows in each of the next steps.
WindowSum = tuple[int, int]


class StepTime(Protocol):
    """Step time in seconds as a function of the batch, of nothing else.

    `context_tokens` is the context of the decodes at the end of the step, summed. A model whose
    attention has `windows` is told a sum for each of them as well.
    """

    @property
    def windows(self) -> tuple[int, ...]:
        """In tokens, of attention that does not read all of the context."""

    def line(
        self, num_decodes: int, context_tokens: int, windows: Items[WindowSum] = ()
    ) -> tuple[float, float, float]:
        """(intercept, slope, limit): a step of these decodes takes intercept + slope *
        context_tokens, and so do later steps as long as context_tokens < limit (and none of the
        decodes that grow in a window fills it)."""

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),
    ) -> float:
        """A step of decodes and prefill chunks."""


@dataclass(frozen=True, slots=True)
class AffineStepTime:
    """a + b * (tokens of the step) + c * (context at the end of the step, summed)."""

    a: float
    b: float
    c: float

    @property
    def windows(self) -> tuple[int, ...]:
        return ()

    def line(
        self,
        num_decodes: int,
        context_tokens: int,  # noqa: ARG002
        windows: Items[WindowSum] = (),  # noqa: ARG002
    ) -> tuple[float, float, float]:
        return self.a + self.b * num_decodes, self.c, inf

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),  # noqa: ARG002
    ) -> float:
        tokens, context = num_decodes, context_tokens
        for chunk, before in chunks:
            tokens += chunk
            context += before + chunk
        return self.a + self.b * tokens + self.c * context


class HostTime:
    """A step time with the engine's CPU work of `cpu_s` seconds a step.

    Synchronous scheduling adds it to every step; asynchronous scheduling does it while the GPU
    runs, so that a step takes the longer of the two.
    """

    def __init__(self, gpu: StepTime, cpu_s: float, *, asynchronous: bool) -> None:
        self._gpu, self._cpu_s, self._asynchronous = gpu, cpu_s, asynchronous

    @property
    def windows(self) -> tuple[int, ...]:
        return self._gpu.windows

    def line(
        self, num_decodes: int, context_tokens: int, windows: Items[WindowSum] = ()
    ) -> tuple[float, float, float]:
        intercept, slope, limit = self._gpu.line(num_decodes, context_tokens, windows)
        if not self._asynchronous:
            return intercept + self._cpu_s, slope, limit
        if intercept + slope * context_tokens >= self._cpu_s:
            return intercept, slope, limit
        if slope > 0:
            limit = min(limit, (self._cpu_s - intercept) / slope)
        return self._cpu_s, 0.0, limit

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),
    ) -> float:
        seconds = self._gpu.mixed(num_decodes, context_tokens, chunks, windows)
        return max(seconds, self._cpu_s) if self._asynchronous else seconds + self._cpu_s
