"""What one replica can carry within the limits: bounds, without queueing.

Every bound asks the same step model. Rates rise with the batch and so does the step time, so
the largest batch within the limits is where what they allow is used up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from capplan.formulas.attention import context_reads
from capplan.formulas.kv import tokens_held
from capplan.formulas.roots import crossing
from capplan.performance.batch import Batch, Chunk, StepTime
from capplan.performance.kv_pool import KvPool
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.planner.question import Question
from capplan.specs.tensors import weight_bytes_per_gpu


@dataclass(frozen=True, slots=True)
class MeanStep:
    """The steady state at a given number of decodes: each step also carries their prefill."""

    decode_batch: float
    step_time_s: float  # = mean time per output token
    ttft_s: float  # prefill of one prompt beside these decodes, no queue
    requests_per_s: float


class Replica:
    """``tp`` accelerators holding the model, under the question's traffic and limits."""

    def __init__(self, question: Question, tp: int) -> None:
        self.question = question
        self.tp = tp
        engine = question.engine
        self.steps = StepModel(
            question.model,
            question.hardware,
            question.calibration.rates(derated_rates(question.hardware, tp)),
            tp=tp,
            dtype=engine.dtype,
            kv_dtype=engine.kv_dtype,
        )

    @cached_property
    def weight_bytes_per_gpu(self) -> int:
        return weight_bytes_per_gpu(self.question.model, self.tp, self.question.engine.dtype)

    @property
    def pool_bytes_per_gpu(self) -> float:
        """KV pool on each GPU; negative where the weights do not fit."""
        engine = self.question.engine
        taken = self.weight_bytes_per_gpu + engine.reserve_bytes
        return engine.budget_bytes_per_gpu(self.question.hardware) - taken

    @cached_property
    def pool(self) -> KvPool:
        """The same in blocks."""
        question = self.question
        return question.engine.kv_pool(question.model, self.pool_bytes_per_gpu, tp=self.tp)

    @cached_property
    def sequence_bytes_per_gpu(self) -> int:
        """KV that a request at full length keeps on each GPU, in whole blocks."""
        return self.pool.decode_bytes(self.question.workload.context_tokens)

    @cached_property
    def max_sequences(self) -> int:
        """Requests that fit at full length, one of them still in its prefill."""
        return self.pool.num_sequences(self.question.workload.context_tokens)

    def decode_step_s(self, num_decodes: float) -> float:
        """A step of decodes alone at their mean context."""
        context = self.question.workload.decode_context_tokens
        reads = self.steps.uniform_reads(num_decodes, context)
        return self.steps.decode(num_decodes, reads).total_s

    def ttft_s(self, num_decodes: float) -> float:
        """Prefill of one prompt in chunks of the token budget, beside the decodes; no queue."""
        return sum(times * step.total_s for times, step in self.prefill_steps(num_decodes))

    def prefill_steps(self, num_decodes: float) -> list[tuple[int, StepTime]]:
        """The steps in which one prompt is read beside the decodes: how many, and one of them."""
        workload = self.question.workload
        budget = self.question.engine.max_num_batched_tokens
        reads = self.steps.uniform_reads(num_decodes, workload.decode_context_tokens)
        room = max(1, budget - math.ceil(num_decodes))
        full, rest = divmod(workload.prompt_tokens, room)
        # Chunks grow dearer with their context in a straight line, so the mean chunk stands
        # for the full ones and a long prompt costs no more to plan than a short one.
        steps = []
        if full:
            middle = Chunk(room, (full - 1) * room // 2)
            steps.append((full, self.steps.mixed(num_decodes, reads, [middle])))
        if rest:
            last = Chunk(rest, full * room)
            steps.append((1, self.steps.mixed(num_decodes, reads, [last])))
        return steps

    def mean_step(self, decode_batch: float) -> MeanStep:
        """The steady state in which ``decode_batch`` requests decode.

        Every finished request makes room for a prompt, so a step carries
        batch x prompt / (output - 1) prefill tokens beside its decodes. Below one decode the
        replica idles between requests; a step that does run has one.
        """
        workload = self.question.workload
        if workload.output_tokens == 1:
            return MeanStep(0.0, 0.0, self.ttft_s(0.0), self.prefill_requests_per_s)
        batch = self.mean_batch(decode_batch)
        step = self.steps.time(batch).total_s
        ttft_s = self.ttft_s(decode_batch)
        return MeanStep(decode_batch, step, ttft_s, batch.num_prefills / step)

    def mean_batch(self, decode_batch: float) -> Batch:
        """What a step carries in that state; outputs of more than one token."""
        workload = self.question.workload
        prompts = decode_batch / (workload.output_tokens - 1)
        decodes = max(1.0, decode_batch)
        tokens = workload.prompt_tokens
        windows = self.steps.windows
        return Batch(
            decodes,
            self.steps.uniform_reads(decodes, workload.decode_context_tokens),
            prefill_tokens=prompts * tokens,
            num_prefills=prompts,
            prefill_reads={w: prompts * context_reads(tokens, 0, w) for w in windows},
            prefill_kv_tokens={w: prompts * tokens_held(tokens, w) for w in windows},
        )

    @cached_property
    def max_decode_batch(self) -> int:
        """Largest batch of decodes alone within TPOT, the pool and the token budget; 0 if none."""
        limit = self.question.limits.slo_tpot_s
        most = min(self.max_sequences, self.question.engine.max_num_batched_tokens)
        if most < 1 or self.decode_step_s(1) > limit:
            return 0
        return _largest_int(most, lambda batch: self.decode_step_s(batch) <= limit)

    @cached_property
    def prefill_requests_per_s(self) -> float:
        """Prompts a second when the replica does nothing else, packed into full steps."""
        workload = self.question.workload
        budget = self.question.engine.max_num_batched_tokens
        packed = min(budget // workload.prompt_tokens, self.max_sequences)
        if packed < 2:
            return 1 / self.ttft_s(0.0)
        chunks = [Chunk(workload.prompt_tokens)]
        one = self.steps.batch(0.0, {}, chunks)
        windows = self.steps.windows
        step = self.steps.time(
            Batch(
                0.0,
                {},
                prefill_tokens=packed * one.prefill_tokens,
                num_prefills=packed,
                prefill_reads={w: packed * (one.prefill_reads or {})[w] for w in windows},
                prefill_kv_tokens={w: packed * (one.prefill_kv_tokens or {})[w] for w in windows},
            )
        ).total_s
        return packed / step

    def best_mean_step(self) -> MeanStep | None:
        """The steady state of most requests a second within all limits, or None."""
        if self.mean_step_fault(0.0) is not None:
            return None
        if self.question.workload.output_tokens == 1:
            return self.mean_step(0.0)
        most = float(min(self.max_sequences, self.question.engine.max_num_batched_tokens))
        if self.mean_step_fault(most) is None:
            return self.mean_step(most)
        best, _ = crossing(self._overused, 0.0, most)
        return self.mean_step(best) if best > 0 else None

    def fault(self) -> str | None:
        """What keeps any number of such replicas from meeting the limits, or None.

        weights, kv_memory, or a limit that is broken without any load.
        """
        if self.pool_bytes_per_gpu <= 0:
            return "weights"
        if self.max_sequences < 1:
            return "kv_memory"
        return self.mean_step_fault(0.0)

    def mean_step_fault(self, decode_batch: float) -> str | None:
        """The limit that this steady state breaks: tpot, ttft, kv_memory, token_budget."""
        used = self.used_fractions(self.mean_step(decode_batch))
        return next((name for name, fraction in used.items() if fraction > 1), None)

    def used_fractions(self, step: MeanStep) -> dict[str, float]:
        """What a steady state takes of each limit, the most telling first."""
        question, batch = self.question, step.decode_batch
        intervals = max(1, question.workload.output_tokens - 1)
        step_tokens = batch * (1 + question.workload.prompt_tokens / intervals)
        # A prompt in prefill holds its blocks as well: Little's law over the prefill alone.
        present = batch + step.requests_per_s * step.ttft_s
        return {
            "tpot": step.step_time_s / question.limits.slo_tpot_s,
            "ttft": step.ttft_s / question.limits.slo_ttft_s,
            "kv_memory": present / self.max_sequences,
            "token_budget": step_tokens / question.engine.max_num_batched_tokens,
        }

    def _overused(self, decode_batch: float) -> float:
        """Above zero where a limit is broken."""
        return max(self.used_fractions(self.mean_step(decode_batch)).values()) - 1

    def limit_beyond(self, best: MeanStep) -> str:
        """The limit at which the best steady state stops: what a slightly larger batch breaks."""
        beyond = best.decode_batch * (1 + 1e-6) + 1e-6
        return self.mean_step_fault(beyond) or "kv_memory"

    def mean_step_at_rate(self, requests_per_s: float) -> MeanStep | None:
        """The steady state that carries a given rate; None above what any batch carries."""
        low, high = 0.0, float(max(1, self.max_sequences))
        if self.question.workload.output_tokens == 1:
            return self.mean_step(0.0)
        if self.mean_step(high).requests_per_s < requests_per_s:
            return None
        _, batch = crossing(lambda b: self.mean_step(b).requests_per_s - requests_per_s, low, high)
        return self.mean_step(batch)


def _largest_int(most: int, holds: Callable[[int], bool]) -> int:
    """Largest number in 1..most for which ``holds`` is true; it is true for 1 and then falls."""
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
