"""What a calibration learnt, and whether it helps on runs that it did not see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CalibrateInputs:
    results: tuple[str, ...]
    columns: dict[str, str]  # given for every run
    output: str | None


@dataclass(frozen=True, slots=True)
class ParameterLearnt:
    """Factors have no unit, times are seconds; the range holds 80 % of the posterior.

    ``identified``: the data halve the prior's spread at least; else the prior speaks.
    """

    name: str
    value: float
    low: float
    high: float
    identified: bool
    uncalibrated: float


@dataclass(frozen=True, slots=True)
class FigureErrors:
    """Median |predicted / measured - 1| of one kind of figure.

    ``is_fitted``: else its errors are only watched, and are not in the total.
    """

    name: str
    is_fitted: bool
    num_figures: int
    before_fraction: float
    after_fraction: float
    left_out_fraction: float  # each run predicted by a fit to the others


@dataclass(frozen=True, slots=True)
class OwnErrorRange:
    """Between which factors measured / predicted lay of left-out runs at one kind of load.

    ``loaded``: at 85 % of what the server can carry, or above. Commands that take the calibration
    draw their error bands towards it.
    """

    figure: str  # tpot | ttft | ttft_p99 | throughput
    loaded: bool
    num_runs: int
    low_ratio: float
    high_ratio: float


@dataclass(frozen=True, slots=True)
class RunRemark:
    run: str
    remark: str


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """``helps``: errors on left-out runs are below those without calibration."""

    helps: bool
    hardware: str
    engine: str
    models: tuple[str, ...]
    tp: tuple[int, ...]
    num_runs: int
    parameters: tuple[ParameterLearnt, ...]
    errors: tuple[FigureErrors, ...]
    total: FigureErrors
    remarks: tuple[RunRemark, ...]  # set aside, held back as outliers
    skipped: tuple[RunRemark, ...]
    written: str | None
    bands: tuple[OwnErrorRange, ...]
