"""One engine step as sums, and its time in parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

# Sums by attention window; None is full attention.
WindowSums = Mapping[int | None, float]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prefill tokens given to one request in one step, after ``context_tokens`` computed ones."""

    tokens: int
    context_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """One step as sums. Floats, so that a mean step (a fraction of a prompt) can be asked for."""

    num_decodes: float
    decode_reads: WindowSums  # positions read by all decodes
    prefill_tokens: float = 0.0
    num_prefills: float = 0.0  # prompts that end in this step and sample a token
    prefill_reads: WindowSums | None = None  # causal positions attended to
    prefill_kv_tokens: WindowSums | None = None  # KV entries loaded once for the chunks

    @property
    def tokens(self) -> float:
        return self.num_decodes + self.prefill_tokens

    @property
    def sampled_rows(self) -> float:
        return self.num_decodes + self.num_prefills


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step; the parts sum to the total."""

    gemm_s: float = 0.0  # all products but those of routed experts; the head
    experts_s: float = 0.0
    attention_s: float = 0.0  # and recurrent layers
    elementwise_s: float = 0.0  # norms, rotations, activations, sampling
    collective_s: float = 0.0
    host_s: float = 0.0  # CPU and launch time that the GPU waits for

    @property
    def total_s(self) -> float:
        return (
            self.gemm_s
            + self.experts_s
            + self.attention_s
            + self.elementwise_s
            + self.collective_s
            + self.host_s
        )

    def __add__(self, other: StepTime) -> StepTime:
        return StepTime(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(StepTime)))
