"""`--calibration FILE`: what was learnt from the user's own servers, and for which it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capplan.cli.inputs import Inputs, checked_name
from capplan.errors import CapplanError
from capplan.performance.calibration import UNCALIBRATED, Calibration

OPTION = "--calibration"


def calibration_of(
    inputs: Inputs, file: str | None, model_id: str, hardware_id: str, engine: str
) -> Calibration:
    """Of one accelerator; raises CapplanError where the file is of another one."""
    return calibrations_of(inputs, file, model_id, [hardware_id], engine)[hardware_id]


def calibrations_of(
    inputs: Inputs, file: str | None, model_id: str, hardware_ids: Sequence[str], engine: str
) -> dict[str, Calibration]:
    """By accelerator; those that the file is not of stay as they are, and are named.

    Raises CapplanError where it is of none of them.
    """
    found = dict.fromkeys(hardware_ids, UNCALIBRATED)
    if file is None:
        return found
    from capplan.performance.calibration import (
        calibration_for,
        calibration_words,
        check_calibration,
    )
    from capplan.specs.calibration import load_calibration

    spec = load_calibration(Path(checked_name(OPTION, file)))
    if len(hardware_ids) == 1:
        check_calibration(spec, hardware_ids[0])
    elif spec.hardware not in found:
        raise CapplanError(
            f"{OPTION} is of {spec.hardware}, which is not among {', '.join(hardware_ids[:8])}",
            hint="calibrate one of these accelerators, or leave --calibration out",
        )
    found[spec.hardware], notes = calibration_for(spec, model_id, engine)
    inputs.assume("calibration", calibration_words(spec, file), OPTION)
    for note in notes:
        inputs.assume("calibration of another server", note, OPTION)
    others = [name for name in hardware_ids if name != spec.hardware]
    if others:
        text = ", ".join(others) if len(others) <= 4 else f"{len(others)} other accelerators"
        inputs.assume("not calibrated", text, OPTION)
    if not spec.bands:
        old = "the file states no errors by figure: bands are not narrowed"
        inputs.assume("errors of the calibration's runs", old, OPTION)
    return found
