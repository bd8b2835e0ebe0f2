"""A prediction for each measured row, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import RunSettings, settings_of
from capplan.errors import CapplanError
from capplan.performance.calibration import UNCALIBRATED, Calibration, calibration_of
from capplan.results.assumptions import Assumption
from capplan.specs.calibration import CalibrationSpec

_ROWS_PER_TASK = 40


@dataclass(frozen=True)
class Prediction:
    """``metrics`` by column, or ``reason`` why the row cannot be predicted."""

    id: str
    metrics: dict[str, float]
    reason: str | None
    assumptions: tuple[Assumption, ...]


def predict(run: MeasuredRun, learnt: CalibrationSpec | None = None) -> Prediction:
    """One row; a calibration counts for rows of its accelerator and engine."""
    try:
        settings = settings_of(run)
        load = load_of(run)
        measured = emulate(settings, load, server_of(settings, _calibration(settings, learnt)))
    except CapplanError as error:
        return Prediction(run.id, {}, error.message, ())
    assumptions = [*settings.assumptions, *load.assumptions]
    if measured.kv_note is not None:
        assumptions.append(Assumption("KV pool", measured.kv_note, "gpu_memory_fraction"))
    return Prediction(run.id, measured.metrics, None, tuple(assumptions))


def _calibration(settings: RunSettings, learnt: CalibrationSpec | None) -> Calibration:
    if learnt is None:
        return UNCALIBRATED
    own = (learnt.hardware, learnt.engine) == (settings.hardware_id, settings.engine.kind)
    return calibration_of(learnt) if own else UNCALIBRATED


def predict_all(
    runs: Sequence[MeasuredRun],
    processes: int | None = None,
    learnt: CalibrationSpec | None = None,
) -> list[Prediction]:
    """All rows, in their order; rows of one deployment are kept together, for its step times."""
    order = sorted(range(len(runs)), key=lambda i: (_deployment_key(runs[i]), i))
    tasks = [
        [runs[i] for i in order[start : start + _ROWS_PER_TASK]]
        for start in range(0, len(order), _ROWS_PER_TASK)
    ]
    some = partial(_predict_some, learnt)
    processes = processes or min(len(tasks), os.cpu_count() or 1)
    if processes == 1:
        done: Iterable[list[Prediction]] = map(some, tasks)
        results = [prediction for part in done for prediction in part]
    else:
        with ProcessPoolExecutor(processes) as pool:
            results = [p for part in pool.map(some, tasks) for p in part]
    by_row = dict(zip(order, results, strict=True))
    return [by_row[i] for i in range(len(runs))]


def _deployment_key(run: MeasuredRun) -> tuple[str, ...]:
    names = ("model", "gpu", "engine", "tp", "weight_dtype", "kv_dtype", "num_gpus")
    return tuple(run.columns.get(name, "") for name in names)


def _predict_some(learnt: CalibrationSpec | None, runs: list[MeasuredRun]) -> list[Prediction]:
    return [predict(run, learnt) for run in runs]
