"""`capplan roofline`: the question as it was understood, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from capplan.results.bands import ErrorBand


@dataclass(frozen=True, slots=True)
class RooflineInputs:
    """The question, in base units."""

    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    tp: int
    batches: tuple[int, ...]
    context_tokens: tuple[int, ...]
    calibration: str | None = None  # a file
    beside: tuple[str, ...] = ()  # other accelerators


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One phase at one batch and context; ``time_s`` is the shortest possible.

    ``mfu`` and ``mbu`` are what the derated time makes of the data sheet's rates.
    """

    phase: str  # prefill | decode
    num_sequences: int
    context_tokens: int
    new_tokens: int
    flop: float
    hbm_bytes: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    intensity_flop_per_byte: float
    bound: str  # memory | compute
    attainable_flop_per_s: float
    peak_fraction: float
    time_s: float
    derated_time_s: float
    tokens_per_s: float
    band_low_s: float  # of the derated time
    band_high_s: float
    mfu: float  # model FLOP / (time x peak)
    mbu: float  # (weights + KV) / (time x bandwidth)


@dataclass(frozen=True, slots=True)
class RooflineKernel:
    """One kind of work within a point. What does no arithmetic has a derated time alone."""

    phase: str
    num_sequences: int
    context_tokens: int
    kernel: str
    compute_format: str | None
    flop: float
    hbm_bytes: float
    intensity_flop_per_byte: float | None
    bound: str | None  # memory | compute
    attainable_flop_per_s: float | None
    time_s: float | None  # the shortest possible
    derated_time_s: float
    step_fraction: float  # of the derated time of the whole


@dataclass(frozen=True, slots=True)
class GpuRoofline:
    """Roofs of one GPU, and the points under them."""

    hardware: str
    model: str
    dtype: str
    compute_format: str
    tp: int
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    ridge_flop_per_byte: float
    derated_peak_flops_per_s: float
    derated_bandwidth_bytes_per_s: float
    points: tuple[RooflinePoint, ...]
    bands: tuple[ErrorBand, ...]  # of prefill (as TTFT's) and decode (as TPOT's)
    kernels: tuple[RooflineKernel, ...] = ()  # where they were asked for


@dataclass(frozen=True, slots=True)
class RooflineResult(GpuRoofline):
    """The first accelerator that was asked for, and the others beside it."""

    beside: tuple[GpuRoofline, ...] = ()

    @classmethod
    def of(cls, first: GpuRoofline, beside: Sequence[GpuRoofline]) -> RooflineResult:
        own = {field.name: getattr(first, field.name) for field in fields(first)}
        return cls(**own, beside=tuple(beside))

    @property
    def each(self) -> tuple[GpuRoofline, ...]:
        return (self, *self.beside)
