"""The performance model bent to one's own servers by a few factors that mean something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capplan import units
from capplan.errors import CapplanError
from capplan.performance.overheads import EngineOverheads
from capplan.performance.rates import AllReduceRate, Rates, reached

if TYPE_CHECKING:  # most answers take no calibration
    from capplan.performance.own_errors import OwnRuns
    from capplan.specs.calibration import CalibrationSpec


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors on what the accelerator reaches, and what a step takes beyond the model.

    Compute and bandwidth stay below the data sheet's whatever the factor. ``step_s`` and
    ``sequence_s`` may be below zero: the engine is leaner than its profile; its sum never is.
    """

    compute: float = 1.0
    bandwidth: float = 1.0
    collective_latency: float = 1.0
    step_s: float = 0.0  # a step
    sequence_s: float = 0.0  # a running sequence and step
    own: OwnRuns | None = None  # what the runs say of the error

    @property
    def is_neutral(self) -> bool:
        """Whether rates stay as they are."""
        return self.compute == self.bandwidth == self.collective_latency == 1.0

    def rates(self, rates: Rates) -> Rates:
        kernels = rates.kernels
        if kernels is None or self.is_neutral:
            return rates
        kernels = replace(kernels, compute_factor=self.compute, bandwidth_factor=self.bandwidth)
        return replace(
            reached(rates, kernels),
            all_reduce=self._slower(rates.all_reduce),
            exchange=self._slower(rates.exchange),
            hop=self._slower(rates.hop),
        )

    def overheads(self, engine: EngineOverheads) -> EngineOverheads:
        return replace(
            engine,
            step_s=max(0.0, engine.step_s + self.step_s),
            sequence_s=max(0.0, engine.sequence_s + self.sequence_s),
        )

    def _slower(self, rate: AllReduceRate | None) -> AllReduceRate | None:
        if rate is None:
            return None
        return replace(rate, latency_s=rate.latency_s * self.collective_latency)


UNCALIBRATED = Calibration()


def calibration_of(spec: CalibrationSpec) -> Calibration:
    """The factors of a file, and the errors of its runs."""
    from capplan.performance.own_errors import OwnErrors, OwnRuns  # most answers take none

    errors = tuple(OwnErrors(b.figure, b.loaded, b.runs, b.low, b.high) for b in spec.bands)
    return Calibration(
        compute=spec.compute.value,
        bandwidth=spec.bandwidth.value,
        collective_latency=spec.collective_latency.value,
        step_s=spec.step_us.value / 1e6,
        sequence_s=spec.sequence_us.value / 1e6,
        own=OwnRuns(errors, spec.tp) if errors else None,
    )


def check_calibration(spec: CalibrationSpec, hardware_id: str) -> None:
    """Raises CapplanError for another accelerator: the file's factors mean nothing here."""
    if spec.hardware != hardware_id:
        raise CapplanError(
            f"--calibration is of {spec.hardware}, this is {hardware_id}",
            hint="calibrate this accelerator, or leave --calibration out",
        )


def calibration_for(
    spec: CalibrationSpec, model_id: str, engine: str
) -> tuple[Calibration, tuple[str, ...]]:
    """As it holds for a model under an engine, and notes where the file speaks of others.

    What the accelerator reaches holds for other models and engines, the band then being no
    narrower than without; times beside an engine's profile are that engine's alone.
    """
    found, notes, unlike = calibration_of(spec), [], []
    if model_id not in spec.models:
        unlike.append(", ".join(spec.models))
        notes.append(f"of {unlike[-1]}, not {model_id}: bands are not narrowed")
    if engine != spec.engine:
        found = replace(found, step_s=0.0, sequence_s=0.0)
        unlike.append(spec.engine)
        notes.append(
            f"under {spec.engine}, not {engine}: its step and sequence times are left out, bands "
            "are not narrowed"
        )
    if found.own is not None and unlike:
        found = replace(found, own=replace(found.own, unlike=tuple(unlike)))
    return found, tuple(notes)


def calibration_words(spec: CalibrationSpec, file: str) -> str:
    """`mine.yaml: 12 runs of h100-sxm-80gb under vllm; compute x 0.93, bandwidth x 0.97`."""
    runs = f"{spec.runs:,} run{'' if spec.runs == 1 else 's'}"
    factors = ", ".join(
        f"{name} x {units.format_number(fitted.value, digits=3)}"
        for name, fitted in (("compute", spec.compute), ("bandwidth", spec.bandwidth))
    )
    return f"{file}: {runs} of {spec.hardware} under {spec.engine}; {factors}"
