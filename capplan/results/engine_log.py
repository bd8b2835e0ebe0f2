"""A start-up log beside what was predicted for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogTerm:
    """One figure; ``unit`` is bytes, tokens or times. Equal low and high: computed."""

    name: str
    unit: str
    low: float
    predicted: float
    high: float
    logged: float
    difference: float  # predicted less logged


@dataclass(frozen=True, slots=True)
class LogComparison:
    engine: str | None
    version: str | None
    num_runs: int  # the last one was read
    terms: tuple[LogTerm, ...]
    longest_admitted_tokens: int | None  # where the engine refused its maximum length
    differs_most: str | None  # of the terms that make the pool
    differing_ranks: tuple[str, ...]
    unread: tuple[str, ...]
