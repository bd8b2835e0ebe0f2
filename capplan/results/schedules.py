"""What a few requests got, step by step, around a long prompt: under two schedulers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """``kind``: prefill | decode | stalled (it runs, and the step gives it nothing) | waiting."""

    start_s: float
    end_s: float
    kind: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One request within the window."""

    id: str
    prompt_tokens: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One scheduler; the first lane is the long prompt, the others were being answered.

    ``longest_gap_s`` is the longest between two tokens of one of the others, within the window;
    ``ttft_s`` that of the long prompt, ``server_s`` included.
    """

    key: str
    name: str
    max_num_batched_tokens: int | None  # None: no budget
    lanes: tuple[Lane, ...]
    longest_gap_s: float | None
    ttft_s: float


@dataclass(frozen=True, slots=True)
class SchedulesResult:
    """Times are those of the simulation's clock; both schedules are within the same window."""

    prompt_tokens: int
    arrival_s: float
    num_running: int  # answers under way when the prompt was begun
    server_s: float  # of the long prompt's TTFT, around the engine
    start_s: float
    end_s: float
    schedules: tuple[Schedule, ...]
