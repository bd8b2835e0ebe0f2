"""What was learnt from one's own servers, for the deployments that run on such accelerators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capplan.errors import CapplanError
from capplan.performance.calibration import (
    UNCALIBRATED,
    Calibration,
    calibration_for,
    calibration_words,
)
from capplan.specs.calibration import CalibrationSpec, load_calibration


@dataclass(frozen=True)
class OwnServers:
    """A calibration, and the file as it was named."""

    spec: CalibrationSpec
    file: str


@dataclass(frozen=True)
class CaseCalibration:
    """As it holds for one deployment; ``notes`` say of which runs it is."""

    calibration: Calibration = UNCALIBRATED
    file: str | None = None
    notes: tuple[str, ...] = ()


def read_own_servers(file: str, folder: Path = Path()) -> OwnServers:
    """Raises CapplanError for a file that is missing or no calibration."""
    return OwnServers(load_calibration(folder / file), file)


def stated_servers(file: str, folder: Path, hardware_id: str) -> OwnServers:
    """Those that the configuration states for a deployment.

    Raises CapplanError where they have another accelerator.
    """
    own = read_own_servers(file, folder)
    if own.spec.hardware != hardware_id:
        raise CapplanError(
            f"`calibration: {file}` is of {own.spec.hardware}, the deployment is on {hardware_id}",
            hint=f"state one of {hardware_id}, or leave `calibration` out",
        )
    return own


def calibration_by(own: OwnServers, model_id: str, engine: str) -> CaseCalibration:
    """What these servers say of a model under an engine."""
    found, unlike = calibration_for(own.spec, model_id, engine)
    said = calibration_words(own.spec, own.file), *unlike
    return CaseCalibration(found, own.file, tuple(f"calibration {words}" for words in said))
