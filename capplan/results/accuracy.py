"""How far predictions are from measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccuracyInputs:
    measured: str
    by: tuple[str, ...]
    where: Mapping[str, str]
    num_worst: int
    calibration: str | None = None  # a file


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Errors are |predicted - measured| / measured; bias is the median of predicted / measured."""

    name: str  # a column of the table, or a figure of the target table
    num_measured: int
    num_compared: int
    coverage_fraction: float
    median_error_fraction: float | None
    mean_error_fraction: float | None
    p90_error_fraction: float | None
    bias_ratio: float | None


@dataclass(frozen=True, slots=True)
class Target:
    """A figure over some workloads, and what it should be at most."""

    errors: ErrorSummary
    workloads: tuple[str, ...]
    most_median_fraction: float
    most_p90_fraction: float | None
    met: bool | None  # None: nothing to compare


@dataclass(frozen=True, slots=True)
class GroupErrors:
    values: tuple[str, ...]  # of the columns asked for, in their order
    num_rows: int
    errors: tuple[ErrorSummary, ...]


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of what the client measures: seconds of it, by what the time went to."""

    name: str
    run_s: float
    ttft_s: float | None
    tpot_s: float | None


@dataclass(frozen=True, slots=True)
class WorstRow:
    id: str
    metric: str
    measured: float
    predicted: float
    error_fraction: float
    what: str  # model, GPUs, engine, load
    parts: tuple[StepPart, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unpredicted:
    reason: str
    num_rows: int
    example: str


@dataclass(frozen=True, slots=True)
class AccuracyResult:
    num_rows: int
    num_predicted: int
    targets: tuple[Target, ...]
    metrics: tuple[ErrorSummary, ...]
    groups: tuple[GroupErrors, ...]
    worst: tuple[WorstRow, ...]
    unpredicted: tuple[Unpredicted, ...]
