"""Schedulers side by side under the same traffic."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.bands import BandedFigure


@dataclass(frozen=True, slots=True)
class SchedulerRow:
    """One scheduler. A percentile is None where fewer than ten samples lie beyond it.

    ``bands`` have statistics beside the usual: `longest_prompt` of TTFT, `longest_gap` of ITL.
    """

    key: str
    name: str
    trace_checked: bool  # are its steps compared with recorded ones of the real engine?
    kv_allocation: str  # paged, or what is reserved at admission
    max_num_batched_tokens: int | None  # None: no budget
    end: str  # finished | stalled
    num_answered: int
    num_refused: int
    end_s: float  # last token
    output_tokens_per_s: float  # from the first arrival to the last token
    ttft_mean_s: float | None
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    ttft_max_s: float | None
    longest_prompt_ttft_s: float | None  # mean over the longest prompts
    itl_p50_s: float | None
    itl_p99_s: float | None
    longest_gap_s: float | None  # that a running request waited for its next token
    wasted_slot_fraction: float | None  # of slots held, step by step; None: not told
    padding_tokens: int  # computed to make prompts as long as the longest
    max_running: int
    num_preemptions: int
    busy_s: float
    bands: tuple[BandedFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulersInputs:
    """What every scheduler is given."""

    model: str
    model_name: str
    hardware: str
    plan: str | None
    tp: int
    pp: int
    traffic: str
    seed: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    block_size: int
    num_gpu_blocks: int
    enable_prefix_caching: bool


@dataclass(frozen=True, slots=True)
class SchedulersResult:
    num_requests: int
    longest_prompt_tokens: int
    num_longest_prompts: int
    interrupted: bool  # only the first rows are known
    rows: tuple[SchedulerRow, ...]
