"""The performance model bent to one's own servers by a few factors that mean something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capplan.errors import CapplanError
from capplan.performance.overheads import EngineOverheads
from capplan.performance.rates import AllReduceRate, Rates

if TYPE_CHECKING:  # most answers take no calibration
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

    def rates(self, rates: Rates) -> Rates:
        kernels = rates.kernels
        if kernels is not None:
            kernels = replace(kernels, compute_factor=self.compute, bandwidth_factor=self.bandwidth)
        return replace(
            rates,
            kernels=kernels,
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
    """The factors of a file."""
    return Calibration(
        compute=spec.compute.value,
        bandwidth=spec.bandwidth.value,
        collective_latency=spec.collective_latency.value,
        step_s=spec.step_us.value / 1e6,
        sequence_s=spec.sequence_us.value / 1e6,
    )


def check_calibration(
    spec: CalibrationSpec, hardware_id: str, engine: str | None = None
) -> tuple[str, ...]:
    """Notes where the file speaks of other servers than these.

    Raises CapplanError for another accelerator: its factors mean nothing here.
    """
    if spec.hardware != hardware_id:
        raise CapplanError(
            f"--calibration is of {spec.hardware}, this is {hardware_id}",
            hint="calibrate this accelerator, or leave --calibration out",
        )
    if engine is not None and engine != spec.engine:
        return (f"calibrated under {spec.engine}, planned for {engine}",)
    return ()
