"""The classic exercise of continuous batching, cap by cap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExerciseInputs:
    """The exercise as it is posed; every figure of it is fixed."""

    num_requests: int
    seed: int
    step_fixed_s: float
    step_per_running_s: float
    flop_per_prompt_token: float
    peak_flops_per_s: float
    percentile: float


@dataclass(frozen=True, slots=True)
class ExerciseRow:
    """One cap on running requests. TTFT from admission, as the exercise has it, and from arrival,
    as the user has it."""

    max_num_seqs: int
    output_tokens_per_s: float
    step_time_s: float  # mean over tokens
    ttft_admission_p99_s: float
    ttft_arrival_p99_s: float
    max_running: int
    end_s: float


@dataclass(frozen=True, slots=True)
class ExerciseResult:
    rows: tuple[ExerciseRow, ...]
    prompt_tokens: int  # over all requests
    output_tokens: int
    prefill_s: float  # of all prompts, by the exercise's own rate
    best_cap: int  # the smallest with the highest throughput
