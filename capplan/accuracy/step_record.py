"""Which steps a run was made of: bins of like steps, and what each weighs in TTFT and TPOT.

With the schedule held fast, run time, mean TTFT and mean TPOT are sums over the steps of weight x
step time. So the parts of the step time become parts of what the client measures, and a change of
the step time need not be simulated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import log2
from typing import Any

from capplan.accuracy.client import Timings
from capplan.simulator.step_time import StepTime

Chunks = Items[tuple[int, int]]
# When it began and ended, how many steps, decodes, their mean context at the end of a step, chunks.
Stretch = tuple[float, float, int, int, float, Chunks]
NO_CHUNKS: Chunks = ()


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


class StepRecord:
    """Watches one replica (`simulator.watch.Watch`) and the step times that it asks for."""

    def __init__(self) -> None:
        self.bins: dict[tuple[int, ...], StepBin] = {}
        self._stretches: list[Stretch] = []
        self._asked: tuple[int, int, Chunks] = (0, 0, NO_CHUNKS)

    def watched(self, steps: StepTime) -> StepTime:
        """The same step times; what is asked last is the step that the watch is told of next."""
        return _Watched(steps, self)

    def asked(self, num_decodes: int, context_tokens: int, chunks: Chunks) -> None:
        self._asked = num_decodes, context_tokens, chunks

    # What a replica tells.

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:  # noqa: ARG002
        decodes, context, chunks = self._asked
        end_s = start_s + step_s
        self._stretches.append((start_s, end_s, 1, decodes, float(context), chunks))

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        num_decodes: int,
        context_tokens: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        middle = context_tokens + num_decodes * (num_steps - 1) / 2
        end_s = start_s + num_steps * (base_s + slope_s * middle)
        self._stretches.append((start_s, end_s, num_steps, num_decodes, middle, NO_CHUNKS))

    def gaps(self, gap_s: float, count: int) -> None:
        pass

    def load(self, time_s: float, num_running: int, num_waiting: int, num_used_blocks: int) -> None:
        pass

    # Afterwards.

    def weigh(self, timings: Timings, lengths: Items[tuple[int, int]]) -> None:
        """Sort the steps into bins, each with the requests that waited or decoded in it."""
        self.bins.clear()
        late: list[tuple[float, float]] = []
        pace: list[tuple[float, float]] = []
        for index, (_, output) in enumerate(lengths):
            late.append((timings.sent_s[index], 1.0))
            late.append((timings.first_s[index], -1.0))
            if output > 1:
                pace.append((timings.first_s[index], 1.0 / (output - 1)))
                pace.append((timings.finish_s[index], -1.0 / (output - 1)))
        spans = [(start, end) for start, end, *_ in self._stretches]
        means = zip(_means(late, spans), _means(pace, spans), strict=True)
        for stretch, (num_late, sum_pace) in zip(self._stretches, means, strict=True):
            self._add(stretch, num_late, sum_pace)
        self._stretches.clear()

    def _add(self, stretch: Stretch, late: float, pace: float) -> None:
        _, _, steps, decodes, context, chunks = stretch
        tokens = reads = loaded = 0.0
        for chunk, before in chunks:
            tokens += chunk
            reads += chunk * (before + chunk / 2)
            loaded += before
        # By powers of two of decodes, context and prefill tokens.
        key = (
            round(2 * log2(decodes)) if decodes else -1,
            round(log2(context / decodes)) if decodes else -1,
            round(2 * log2(tokens)) if tokens else -1,
        )
        into = self.bins.setdefault(key, StepBin())
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


class _Watched:
    """Passes questions on, whatever arguments a step time takes."""

    def __init__(self, steps: StepTime, record: StepRecord) -> None:
        self._steps, self._record = steps, record
        self.windows = steps.windows

    def line(self, num_decodes: int, context_tokens: int, *windows: Any) -> Any:
        self._record.asked(num_decodes, context_tokens, NO_CHUNKS)
        return self._steps.line(num_decodes, context_tokens, *windows)

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Chunks, *windows: Any) -> float:
        self._record.asked(num_decodes, context_tokens, tuple(chunks))
        return self._steps.mixed(num_decodes, context_tokens, chunks, *windows)


def _means(
    changes: list[tuple[float, float]], spans: Iterable[tuple[float, float]]
) -> Iterator[float]:
    """The mean over each span of a sum that changes at times; spans in order, not overlapping."""
    changes.sort()
    at, total = 0, 0.0
    for start, end in spans:
        while at < len(changes) and changes[at][0] <= start:
            total += changes[at][1]
            at += 1
        area, since = 0.0, start
        while at < len(changes) and changes[at][0] < end:
            when, change = changes[at]
            area += total * (when - since)
            since = when
            total += change
            at += 1
        area += total * (end - since)
        yield area / (end - start) if end > start else total
