"""The classic closed-form exercise of continuous batching, on the loop of `simulator.policies`.

120 requests wait at t = 0; a scheduler at iteration level admits whole prompts up to a cap. A step
takes 18 ms, 0.12 ms for each running request, and the time of 2 x 7e9 FLOP per prompt token that
it computes at 312 TFLOP/s.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import inf
from random import Random

from capplan.results.exercise import ExerciseInputs, ExerciseResult, ExerciseRow
from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.textbook import Orca
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.step_time import ChunkSums, WindowSum

CAPS = (8, 16, 32, 64, 128, 256)
POSED = ExerciseInputs(
    num_requests=120,
    seed=42,
    step_fixed_s=18e-3,
    step_per_running_s=0.12e-3,
    flop_per_prompt_token=2 * 7e9,
    peak_flops_per_s=312e12,
    percentile=99.0,
)


@dataclass(frozen=True, slots=True)
class ExerciseTime:
    """The step time as the exercise has it: contexts cost nothing."""

    posed: ExerciseInputs

    @property
    def windows(self) -> tuple[int, ...]:
        return ()

    def line(
        self,
        num_decodes: int,
        context_tokens: int,  # noqa: ARG002
        windows: Items[WindowSum] = (),  # noqa: ARG002
    ) -> tuple[float, float, float]:
        return self._running_s(num_decodes), 0.0, inf

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,  # noqa: ARG002
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),  # noqa: ARG002
    ) -> float:
        prompt = sum(tokens for tokens, _ in chunks)
        return self._running_s(num_decodes + len(chunks)) + self.prefill_s(prompt)

    def _running_s(self, number: int) -> float:
        return self.posed.step_fixed_s + self.posed.step_per_running_s * number

    def prefill_s(self, tokens: int) -> float:
        return self.posed.flop_per_prompt_token * tokens / self.posed.peak_flops_per_s


def exercise_requests(posed: ExerciseInputs = POSED) -> list[Request]:
    """Prompt and output of each request in turn, from one stream of random numbers."""
    rng = Random(posed.seed)
    requests = []
    for number in range(posed.num_requests):
        prompt = max(64, int(rng.gauss(1024, 200)))
        output = max(16, int(rng.gauss(256, 50)))
        requests.append(Request(str(number), 0.0, prompt, output))
    return requests


def solve_exercise(caps: Items[int] = CAPS, posed: ExerciseInputs = POSED) -> ExerciseResult:
    """Run it for every cap."""
    requests = exercise_requests(posed)
    rows = tuple(_run(cap, requests, posed) for cap in caps)
    prompts = sum(request.prompt_tokens for request in requests)
    most = max(row.output_tokens_per_s for row in rows)
    return ExerciseResult(
        rows=rows,
        prompt_tokens=prompts,
        output_tokens=sum(request.output_tokens for request in requests),
        prefill_s=ExerciseTime(posed).prefill_s(prompts),
        best_cap=next(row.max_num_seqs for row in rows if row.output_tokens_per_s == most),
    )


def _run(cap: int, requests: Items[Request], posed: ExerciseInputs) -> ExerciseRow:
    records: list[RequestRecord] = []
    longest = max(request.prompt_tokens + request.output_tokens for request in requests)
    config = LoopConfig(
        num_blocks=len(requests), block_size=longest, max_num_seqs=cap, max_model_len=longest,
        kv_allocation="max_tokens",
    )  # fmt: skip
    replica = PolicyReplica(config, Orca(), ExerciseTime(posed), records.append)
    for request in requests:
        replica.submit(request)
    while replica.next_s < inf:
        replica.advance(inf)
    outcome = replica.close()
    tokens = sum(record.output_tokens for record in records)
    # A running request gets a token in every step, so its steps weigh as its tokens do.
    in_batch_s = sum(record.finish_s - record.first_scheduled_s for record in records)
    return ExerciseRow(
        max_num_seqs=cap,
        output_tokens_per_s=tokens / outcome.end_s,
        step_time_s=in_batch_s / tokens,
        ttft_admission_p99_s=_percentile(
            [r.first_token_s - r.first_scheduled_s for r in records], posed.percentile
        ),
        ttft_arrival_p99_s=_percentile([r.ttft_s for r in records], posed.percentile),
        max_running=outcome.max_running,
        end_s=outcome.end_s,
    )


def _percentile(values: list[float], percentile: float) -> float:
    """As the exercise defines it: the element int(0.99 n) of the sorted list."""
    return sorted(values)[int(percentile / 100 * len(values))]
