"""The classic exercise as a screen, with what it hides."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.screen import Column, Screen, Table
from capplan.results.exercise import ExerciseInputs, ExerciseResult, ExerciseRow

# A 7B model with a KV head for each of its 32 heads, in BF16: Touvron et al., 2307.09288.
_LLAMA_2_7B_KV_BYTES_PER_TOKEN = 2 * 32 * 4096 * 2


def screen(result: ExerciseResult, inputs: ExerciseInputs) -> Screen:
    columns = (
        Column("max_num_seqs", "max_num\n_seqs", shows.count),
        Column("output_tokens_per_s", "output\ntok/s", _tenths),
        Column("step_time_s", "mean step\nms", lambda s: _tenths(1e3 * s)),
        Column("ttft_admission_p99_s", "TTFT P99 from\nadmission, ms", _milliseconds),
        Column("ttft_arrival_p99_s", "TTFT P99 from\narrival, ms", _milliseconds),
        Column("max_running", "most\nrunning", shows.count),
    )
    rows = [
        (
            row.max_num_seqs,
            row.output_tokens_per_s,
            row.step_time_s,
            row.ttft_admission_p99_s,
            row.ttft_arrival_p99_s,
            row.max_running,
        )
        for row in result.rows
    ]
    note = (
        f"{inputs.num_requests} requests wait at t = 0. A step takes "
        f"{1e3 * inputs.step_fixed_s:g} ms + {1e3 * inputs.step_per_running_s:g} ms for each "
        f"running request + {inputs.flop_per_prompt_token:.3g} FLOP per prompt token at "
        f"{shows.flops(inputs.peak_flops_per_s)}. P99 is element "
        f"{int(inputs.percentile / 100 * inputs.num_requests)} of the {inputs.num_requests} in "
        "order, counted from 0; the mean step is weighted by tokens."
    )
    return Screen(
        headline=_headline(result),
        tables=[Table("The cap on running requests", columns, rows, note=note)],
        notes=_hidden(result, inputs),
        next_commands=["capplan simulate --compare-schedulers"],
    )


def _headline(result: ExerciseResult) -> str:
    first, best = result.rows[0], _row(result, result.best_cap)
    times = best.output_tokens_per_s / first.output_tokens_per_s
    return (
        f"From cap {first.max_num_seqs} to {best.max_num_seqs}, {shows.number(times)} x the "
        f"throughput. Counted from admission, TTFT P99 rises from "
        f"{_milliseconds(first.ttft_admission_p99_s)} to "
        f"{_milliseconds(best.ttft_admission_p99_s)} ms; counted from arrival, as users do, it "
        f"falls from {_milliseconds(first.ttft_arrival_p99_s)} to "
        f"{_milliseconds(best.ttft_arrival_p99_s)} ms."
    )


def _hidden(result: ExerciseResult, inputs: ExerciseInputs) -> list[str]:
    first, best = result.rows[0], _row(result, result.best_cap)
    tokens = result.prompt_tokens + result.output_tokens
    kv = shows.binary_bytes(tokens * _LLAMA_2_7B_KV_BYTES_PER_TOKEN)
    rest = inputs.num_requests - first.max_num_seqs
    return [
        f"What it hides. The queue: at cap {first.max_num_seqs}, {rest} of "
        f"{inputs.num_requests} requests wait outside of what is measured. The clock starts at "
        "admission, so the smallest cap looks best for latency and is worst for every user but "
        f"the first {first.max_num_seqs}.",
        "Traffic: everybody is there at t = 0. There is no rate, so nothing says whether a cap "
        "keeps up; throughput can only rise with the cap, and no sweet spot is found.",
        f"Head-of-line blocking: from cap {best.max_num_seqs} on all prompts go into one step of "
        f"{_milliseconds(best.ttft_admission_p99_s)} ms, which is their prefill "
        f"({_milliseconds(result.prefill_s)} ms) and nothing that a cap changes. A token budget "
        "would spread it.",
        f"Memory: {tokens:,} tokens are taken to fit. With the KV of a 7B model that has a KV "
        f"head for each head (Llama 2: 512 KiB a token) that is {kv}, beside the weights.",
        "The step: contexts cost nothing, however long, and a prefill step runs at the peak rate "
        "of the data sheet.",
        "The error: step times are the exercise's own, not those of a performance model that was "
        "held against measured servers, so that no figure has an error band.",
        f"The percentile: with {inputs.num_requests} requests, P99 is the second worst of them.",
    ]


def _row(result: ExerciseResult, cap: int) -> ExerciseRow:
    return next(row for row in result.rows if row.max_num_seqs == cap)


def _tenths(value: float) -> str:
    return f"{value:,.1f}"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}"
