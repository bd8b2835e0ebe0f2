"""A prediction for each measured row, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.errors import CapplanError
from capplan.results.assumptions import Assumption

_ROWS_PER_TASK = 40


@dataclass(frozen=True)
class Prediction:
    """``metrics`` by column, or ``reason`` why the row cannot be predicted."""

    id: str
    metrics: dict[str, float]
    reason: str | None
    assumptions: tuple[Assumption, ...]


def predict(run: MeasuredRun) -> Prediction:
    """One row."""
    try:
        settings = settings_of(run)
        load = load_of(run)
        measured = emulate(settings, load, server_of(settings))
    except CapplanError as error:
        return Prediction(run.id, {}, error.message, ())
    assumptions = [*settings.assumptions, *load.assumptions]
    if measured.kv_note is not None:
        assumptions.append(Assumption("KV pool", measured.kv_note, "gpu_memory_fraction"))
    return Prediction(run.id, measured.metrics, None, tuple(assumptions))


def predict_all(runs: Sequence[MeasuredRun], processes: int | None = None) -> list[Prediction]:
    """All rows, in their order; rows of one deployment are kept together, for its step times."""
    order = sorted(range(len(runs)), key=lambda i: (_deployment_key(runs[i]), i))
    tasks = [
        [runs[i] for i in order[start : start + _ROWS_PER_TASK]]
        for start in range(0, len(order), _ROWS_PER_TASK)
    ]
    processes = processes or min(len(tasks), os.cpu_count() or 1)
    if processes == 1:
        done: Iterable[list[Prediction]] = map(_predict_some, tasks)
        results = [prediction for part in done for prediction in part]
    else:
        with ProcessPoolExecutor(processes) as pool:
            results = [p for part in pool.map(_predict_some, tasks) for p in part]
    by_row = dict(zip(order, results, strict=True))
    return [by_row[i] for i in range(len(runs))]


def _deployment_key(run: MeasuredRun) -> tuple[str, ...]:
    names = ("model", "gpu", "engine", "tp", "weight_dtype", "kv_dtype", "num_gpus")
    return tuple(run.columns.get(name, "") for name in names)


def _predict_some(runs: list[MeasuredRun]) -> list[Prediction]:
    return [predict(run) for run in runs]
