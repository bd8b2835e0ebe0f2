"""The answer of `capplan accuracy`: predictions, errors, the worst rows and what was assumed."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from capplan.accuracy.breakdown import parts_of
from capplan.accuracy.measured import METRICS, MeasuredRun
from capplan.accuracy.names import hardware_of, model_of
from capplan.accuracy.predict import CALIBRATION, Prediction
from capplan.accuracy.score import (
    Pair,
    by_metric,
    grouped,
    pairs_of,
    targets,
    unpredicted,
    worst_pairs,
)
from capplan.errors import UNWRITABLE, CapplanError, did_you_mean
from capplan.performance.bands import generation_of
from capplan.results.accuracy import AccuracyResult, WorstRow
from capplan.results.assumptions import Assumption
from capplan.specs.calibration import CalibrationSpec

_MOST_VALUES = 3


def _generation(run: MeasuredRun) -> str:
    return generation_of(hardware_of(run).spec)


def _experts(run: MeasuredRun) -> str:
    return "experts" if model_of(run).spec.has_experts else "dense"


# What follows from a row's names, by the name of a column that the table does not have.
DERIVED: dict[str, Callable[[MeasuredRun], str]] = {
    "generation": _generation,
    "ffn": _experts,
}


def cell(run: MeasuredRun, name: str) -> str:
    """A cell of the table or what follows from it; empty where that is not known."""
    if name in run.columns:
        return run.columns[name]
    try:
        return DERIVED[name](run)
    except CapplanError:
        return ""


def selected(runs: Sequence[MeasuredRun], where: Mapping[str, str]) -> list[MeasuredRun]:
    """The rows whose cells are as asked; raises CapplanError for an unknown column, or none."""
    check_columns(runs, where)
    kept = [
        run
        for run in runs
        if all(cell(run, name).lower() == value.lower() for name, value in where.items())
    ]
    if not kept:
        asked = ", ".join(f"{name}={value}" for name, value in where.items())
        raise CapplanError(f"no row has {asked}", hint="see the values with `--by`")
    return kept


def check_columns(runs: Sequence[MeasuredRun], names: Sequence[str] | Mapping[str, str]) -> None:
    """Raises CapplanError for a column that the table does not have."""
    for name in names:
        known = [*runs[0].columns, *DERIVED]
        if name not in known:
            raise CapplanError(
                f"no column `{name[:40]}`",
                hint=did_you_mean(name, known)
                or f"those of the file's first line, and {', '.join(DERIVED)}",
            )


def accuracy_result(
    runs: Sequence[MeasuredRun],
    predictions: Sequence[Prediction],
    by: Sequence[str],
    num_worst: int,
    calibration: CalibrationSpec | None = None,
) -> AccuracyResult:
    """Errors by metric, by the columns asked for, and of the worst rows."""
    rows = [pairs_of(run, found) for run, found in zip(runs, predictions, strict=True)]
    assumed = {found.id: found.assumptions for found in predictions}
    return AccuracyResult(
        num_rows=len(runs),
        num_predicted=sum(found.reason is None for found in predictions),
        targets=targets(rows),
        metrics=by_metric(rows),
        groups=grouped(rows, lambda run: tuple(cell(run, name) for name in by)) if by else (),
        worst=tuple(
            _worst(pair, assumed[pair.run.id], calibration) for pair in worst_pairs(rows, num_worst)
        ),
        unpredicted=unpredicted(runs, predictions),
    )


def _worst(
    pair: Pair, assumptions: Sequence[Assumption], calibration: CalibrationSpec | None
) -> WorstRow:
    assert pair.predicted is not None
    assert pair.error is not None
    return WorstRow(
        id=pair.run.id,
        metric=pair.metric,
        measured=pair.measured,
        predicted=pair.predicted,
        error_fraction=pair.error,
        what=described(pair.run),
        parts=parts_of(pair.run, calibration),
        assumed=tuple(f"{a.what}: {a.value}" for a in assumptions),
    )


def described(run: MeasuredRun) -> str:
    """`llama-3.1-70b fp8, 4 x H100-SXM, vLLM 0.9.1, closed 64, 1024/1024`."""
    cells = run.columns
    model = run.model.rpartition("/")[2]
    load = {"closed": cells.get("concurrency"), "static": cells.get("concurrency")}.get(
        run.workload, cells.get("request_rate_qps")
    )
    return ", ".join(
        part
        for part in (
            f"{model} {run.weight_dtype}".strip(),
            f"{run.num_gpus or '?'} x {run.gpu}",
            f"{run.engine} {run.engine_version}".strip(),
            f"{run.workload} {load or ''}".strip(),
            f"{cells.get('isl') or '?'}/{cells.get('osl') or '?'}",
        )
        if part
    )


def assumed(
    rows: Iterable[Sequence[Assumption]], options: Mapping[str, str] | None = None
) -> list[Assumption]:
    """What rows left unsaid, by column: how many, and the values most often taken.

    ``options`` that say the same of all rows, by column.
    """
    by_column = {CALIBRATION: CALIBRATION, **(options or {})}
    values: dict[tuple[str, str], Counter[str]] = {}
    for assumptions in rows:
        for one in assumptions:
            values.setdefault((one.option, one.what), Counter())[one.value] += 1
    lines = []
    for (column, what), counts in sorted(values.items()):
        common = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        shown = "; ".join(value for value, _ in common[:_MOST_VALUES])
        more = f"; {len(common) - _MOST_VALUES} more" if len(common) > _MOST_VALUES else ""
        num = sum(counts.values())
        of = f"{what}, {num:,} row{'' if num == 1 else 's'}"
        option = by_column.get(column) or f"column {column}"
        lines.append(Assumption(of, f"{shown}{more}", option))
    return lines


def write_predictions(predictions: Sequence[Prediction], path: Path) -> None:
    """A CSV of `id` and the metric columns; a row without a prediction is left out."""
    try:
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["id", *METRICS])
            for found in predictions:
                if found.reason is None:
                    cells = [found.metrics.get(name) for name in METRICS]
                    shown = ["" if cell is None else f"{cell:.6g}" for cell in cells]
                    writer.writerow([found.id, *shown])
    except OSError as error:
        raise CapplanError(
            f"`{path}` cannot be written: {error.strerror or error}", hint=UNWRITABLE
        ) from None
