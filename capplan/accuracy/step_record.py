"""Which steps a run was made of: bins of like steps, and what each weighs in TTFT and TPOT.

With the schedule held fast, run time, mean TTFT and mean TPOT are sums over the steps of weight x
step time. So the parts of the step time become parts of what the client measures, and a change of
the step time need not be simulated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from math import log2


@dataclass(slots=True)
class StepBin:
    """Steps that are alike; sums over them."""

    steps: float = 0.0
    decodes: float = 0.0
    context: float = 0.0  # of the decodes, at the end of the step
    tokens: float = 0.0  # of the chunks
    chunks: float = 0.0
    reads: float = 0.0  # positions that the chunks attend to
    loaded: float = 0.0  # KV tokens that the chunks find
    late: float = 0.0  # requests without a first token, summed over steps
    pace: float = 0.0  # 1 / output intervals of those decoding, summed over steps


@dataclass(frozen=True, slots=True)
class MeanStep:
    """One bin's mean step and its weights: seconds of it in the run, in mean TTFT and TPOT."""

    num_decodes: float
    context_tokens: float
    chunk_tokens: float
    num_chunks: float
    chunk_reads: float
    chunk_loaded_tokens: float
    run_weight: float
    ttft_weight: float
    tpot_weight: float


@dataclass
class StepRecord:
    """Bins by powers of two of decodes, context and prefill tokens."""

    bins: dict[tuple[int, ...], StepBin] = field(default_factory=dict)

    def add(
        self,
        steps: float,
        decodes: float,
        context: float,
        chunks: Items[tuple[int, int]],
        late: float,
        pace: float,
    ) -> None:
        """So many steps of this batch, at the mean context of them."""
        tokens = reads = loaded = 0.0
        for chunk, before in chunks:
            tokens += chunk
            reads += chunk * (before + chunk / 2)
            loaded += before
        key = (
            round(2 * log2(decodes)) if decodes else -1,
            round(log2(context / decodes)) if decodes else -1,
            round(2 * log2(tokens)) if tokens else -1,
        )
        into = self.bins.get(key)
        if into is None:
            into = self.bins[key] = StepBin()
        into.steps += steps
        into.decodes += steps * decodes
        into.context += steps * context
        into.tokens += steps * tokens
        into.chunks += steps * len(chunks)
        into.reads += steps * reads
        into.loaded += steps * loaded
        into.late += steps * late
        into.pace += steps * pace

    def mean_steps(self, num_requests: int) -> Iterator[MeanStep]:
        """The bins as mean steps, weights per request."""
        for _, held in sorted(self.bins.items()):
            steps = held.steps
            yield MeanStep(
                num_decodes=held.decodes / steps,
                context_tokens=held.context / steps,
                chunk_tokens=held.tokens / steps,
                num_chunks=held.chunks / steps,
                chunk_reads=held.reads / steps,
                chunk_loaded_tokens=held.loaded / steps,
                run_weight=steps,
                ttft_weight=held.late / num_requests,
                tpot_weight=held.pace / num_requests,
            )
