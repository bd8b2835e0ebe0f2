"""The runs of a calibration: what result files say, completed by what their owner says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from capplan.accuracy.bench_files.read import read_results
from capplan.accuracy.bench_files.row import ResultRow
from capplan.accuracy.measured import MeasuredRun, read_measured, run_of_cells
from capplan.errors import CapplanError

# Without these a result says nothing about a server; the option that gives each.
NEEDED = {
    "model": "--model", "gpu": "--hardware", "workload": "--workload",
    "isl": "--prompt-tokens", "osl": "--output-tokens",
}  # fmt: skip
_CONCURRENCY = ("concurrency", "--concurrency")
_RATE = ("request_rate_qps", "--qps")
_LOAD = {
    "closed": _CONCURRENCY,
    "static": _CONCURRENCY,
    "poisson": _RATE,
    "constant-rate": _RATE,
}


@dataclass(frozen=True, slots=True)
class CalibrationRuns:
    """``notes`` say, for each run, what was set aside; ``skipped`` which files gave none."""

    runs: tuple[MeasuredRun, ...]
    notes: tuple[tuple[str, str], ...]  # (run, remark)
    skipped: tuple[tuple[str, str], ...]  # (file and place, why)


def gather(paths: Sequence[Path], given: Mapping[str, str]) -> CalibrationRuns:
    """Read files and folders; ``given`` are columns that hold for every run, and win.

    Raises CapplanError where a file named by itself cannot be read, or a run lacks what is
    needed; in folders, files of other kinds are passed over and listed.
    """
    runs: list[MeasuredRun] = []
    notes: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    for path, named in _files(paths):
        if path.suffix.lower() == ".csv":
            runs += _with(read_measured(path), path, given)
            continue
        try:
            results = read_results(path)
        except CapplanError as error:
            if named:
                raise
            skipped.append((str(path), error.message))
            continue
        for result in results:
            if isinstance(result, ResultRow):
                runs.append(_run(result, given, len(runs) + 1))
                notes += [(runs[-1].id, note) for note in result.notes]
            else:
                skipped.append((result.name, result.reason))
    if not runs:
        raise CapplanError(
            "no usable run in the results" + (f": {skipped[0][1]}" if skipped else ""),
            hint="give the files that the benchmark tool saved, one or more",
        )
    return CalibrationRuns(tuple(runs), tuple(notes), tuple(skipped))


def _files(paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """(file, was it named by itself), folders searched in the order of names."""
    found: list[tuple[Path, bool]] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".json", ".jsonl"))
            found += [(p, False) for p in inside]
        else:
            found.append((path, True))
    return found


def _run(result: ResultRow, given: Mapping[str, str], number: int) -> MeasuredRun:
    cells = {name: str(value) for name, value in result.cells.items()} | dict(given)
    missing = [name for name in NEEDED if not cells.get(name)]
    load = _LOAD.get(cells.get("workload", ""))
    if load and not cells.get(load[0]):
        missing.append(load[0])
    if missing:
        options = [NEEDED.get(name) or (load[1] if load else name) for name in missing]
        raise CapplanError(
            f"{result.name}: does not say its {' nor its '.join(_said(n) for n in missing)}",
            hint=f"give {', '.join(options)}",
        )
    cells["id"] = f"{number:03d} {result.name}"
    return run_of_cells(result.file, 1, cells)


def _said(column: str) -> str:
    words = {"gpu": "GPU", "isl": "prompt length", "osl": "output length"}
    return words.get(column) or column.replace("_", " ").replace(" qps", "")


def _with(runs: Sequence[MeasuredRun], path: Path, given: Mapping[str, str]) -> list[MeasuredRun]:
    if not given:
        return list(runs)
    return [run_of_cells(path, 1, dict(run.columns) | dict(given)) for run in runs]
