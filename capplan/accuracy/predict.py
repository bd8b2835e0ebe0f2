"""A prediction for each measured row, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.server import Server, server_of
from capplan.accuracy.settings import RunSettings, settings_of
from capplan.errors import CapplanError
from capplan.performance.calibration import calibration_for, check_calibration
from capplan.results.assumptions import Assumption
from capplan.specs.calibration import CalibrationSpec

_ROWS_PER_TASK = 40
CALIBRATION = "--calibration"  # the option, where an assumption is of no column


@dataclass(frozen=True)
class Prediction:
    """``metrics`` by column, or ``reason`` why the row cannot be predicted."""

    id: str
    metrics: dict[str, float]
    reason: str | None
    assumptions: tuple[Assumption, ...]


def predict(run: MeasuredRun, calibration: CalibrationSpec | None = None) -> Prediction:
    """One row."""
    try:
        settings = settings_of(run)
        load = load_of(run)
        server, notes = calibrated_server(settings, calibration)
        measured = emulate(settings, load, server)
    except CapplanError as error:
        return Prediction(run.id, {}, error.message, ())
    assumptions = [*settings.assumptions, *load.assumptions]
    if notes:
        said = "; ".join(notes)
        assumptions.append(Assumption("calibration of another server", said, CALIBRATION))
    if measured.kv_note is not None:
        assumptions.append(Assumption("KV pool", measured.kv_note, "gpu_memory_fraction"))
    return Prediction(run.id, measured.metrics, None, tuple(assumptions))


def calibrated_server(
    settings: RunSettings, calibration: CalibrationSpec | None
) -> tuple[Server, tuple[str, ...]]:
    """And notes where the calibration is of another model or engine.

    Raises CapplanError where it is of another accelerator.
    """
    if calibration is None:
        return server_of(settings), ()
    check_calibration(calibration, settings.hardware_id)
    found, notes = calibration_for(calibration, settings.model_id, settings.engine.kind)
    return server_of(settings, found), notes


def predict_all(
    runs: Sequence[MeasuredRun],
    processes: int | None = None,
    calibration: CalibrationSpec | None = None,
    progress: Callable[[int, int], object] = lambda _done, _of: None,
) -> list[Prediction]:
    """All rows, in their order; rows of one deployment are kept together, for its step times."""
    order = sorted(range(len(runs)), key=lambda i: (_deployment_key(runs[i]), i))
    tasks = [
        [runs[i] for i in order[start : start + _ROWS_PER_TASK]]
        for start in range(0, len(order), _ROWS_PER_TASK)
    ]
    processes = processes or min(len(tasks), os.cpu_count() or 1)
    some = partial(_predict_some, calibration=calibration)
    results: list[Prediction] = []
    with ExitStack() as stack:
        parts: Iterable[list[Prediction]] = map(some, tasks)
        if processes > 1:
            parts = stack.enter_context(ProcessPoolExecutor(processes)).map(some, tasks)
        for part in parts:
            results += part
            progress(len(results), len(runs))
    by_row = dict(zip(order, results, strict=True))
    return [by_row[i] for i in range(len(runs))]


def _deployment_key(run: MeasuredRun) -> tuple[str, ...]:
    names = ("model", "gpu", "engine", "tp", "weight_dtype", "kv_dtype", "num_gpus")
    return tuple(run.columns.get(name, "") for name in names)


def _predict_some(runs: list[MeasuredRun], calibration: CalibrationSpec | None) -> list[Prediction]:
    return [predict(run, calibration) for run in runs]
