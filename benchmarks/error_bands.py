"""The table of error bands from measured rows, and whether held-out rows fall inside.

usage: python benchmarks/error_bands.py MEASURED.csv [--predictions CSV] [--write]

Each row of the core is predicted, and log(measured / predicted) is taken for each figure. With
`--predictions` (`id` and the metric columns, every row predicted by constants that were fitted
without its source and generation) each row counts half by either: a new row has more like it in
the fit than cross-validation leaves, and less than a row that was fitted.

A kind of rows (a cell) has two spreads, below and above: where the middle two thirds end, drawn
towards those of the next wider kind as far as few independent units (source x GPU generation)
stand behind the cell. All spreads of a figure are then stretched by one factor: so far that four
of five rows fall inside bands that were made without the row's own unit.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import pickle
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from capplan.accuracy.client_metrics import quantile
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import METRICS, MeasuredRun, read_measured
from capplan.accuracy.predict import Prediction, predict
from capplan.accuracy.score import THROUGHPUT, TPOT, TTFT, TTFT_P99, first_of, pairs_of
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.accuracy.utilisation import utilisation
from capplan.errors import CapplanError
from capplan.performance.bands import BandKey, Kind, band_key, describe, kinds
from capplan.specs.error_bands import FILE, BandCell, BandTable, Figure

COVERAGE = 0.8
LEAST_ROWS = 12
INNER = 0.16  # robust against the outermost rows: their share on either side
PRIOR_UNITS = 4.0  # units whose word the wider kind has; 2 to 8 give bands alike
MOST = 100.0  # beyond it the prediction said nothing
FIGURES: dict[Figure, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tpot": (TPOT, ("closed", "poisson", "constant-rate", "static")),
    "ttft": (TTFT, ("closed", "poisson", "constant-rate")),
    "ttft_p99": (TTFT_P99, ("closed", "poisson", "constant-rate")),
    "throughput": (THROUGHPUT, ("closed", "static", "offline", "burst", "offline-batch")),
}
STRETCHES = tuple(step / 20 for step in range(10, 100))
Spreads = dict[Kind, tuple[float, float, int]]  # below (negative), above, rows
ANY: Kind = (None, None, None, None, None)


@dataclass(frozen=True)
class Ratio:
    """One measured figure over its prediction."""

    figure: Figure
    key: BandKey
    unit: tuple[str, str]  # source, generation: kept out together
    value: float
    row: str = ""
    is_left_out: bool = False  # predicted by constants fitted without its unit


def ratios_of(run: MeasuredRun, prediction: Prediction, *, is_left_out: bool) -> list[Ratio]:
    """Of one row; none where it cannot be predicted."""
    try:
        settings, load = settings_of(run), load_of(run)
        # A rate that was raised until limits were met is as high as it can be.
        limited = load.limits is not None
        used = 1.0 if limited else utilisation(settings, load, server_of(settings))
    except CapplanError:
        return []
    gpus = settings.tp * settings.pp * settings.dp
    scheduler = settings.engine.scheduler
    key = band_key(settings.model, settings.hardware, scheduler, gpus, used)
    pairs = pairs_of(run, prediction)
    unit = (run.columns.get("source_group", ""), key.architecture)
    found = []
    for figure, (columns, workloads) in FIGURES.items():
        pair = first_of(pairs, columns) if run.workload in workloads else None
        if pair is not None and pair.predicted:
            ratio = pair.measured / pair.predicted
            found.append(Ratio(figure, key, unit, ratio, run.id, is_left_out))
    return found


def _one(job: tuple[MeasuredRun, dict[str, float] | None]) -> list[Ratio]:
    run, left_out = job
    found = ratios_of(run, predict(run), is_left_out=False)
    if left_out is not None:
        found += ratios_of(run, Prediction(run.id, left_out, None, ()), is_left_out=True)
    return found


def spreads_of(ratios: Sequence[Ratio]) -> Spreads:
    """Of each kind that has rows enough, from the widest to the narrowest."""
    members: dict[Kind, list[Ratio]] = defaultdict(list)
    wider: dict[Kind, list[Kind]] = {}
    for ratio in ratios:
        order = kinds(ratio.key)
        for at, kind in enumerate(order):
            members[kind].append(ratio)
            wider.setdefault(kind, order[at + 1 :])
    found: Spreads = {}
    for kind in sorted(members, key=lambda kind: (-len(wider[kind]), str(kind)), reverse=True):
        rows = members[kind]
        num_rows = len({ratio.row for ratio in rows})
        if num_rows < LEAST_ROWS and kind != ANY:
            continue
        logs = sorted(math.log(ratio.value) for ratio in rows)
        below, above = min(0.0, quantile(logs, INNER)), max(0.0, quantile(logs, 1 - INNER))
        parent = next((found[other] for other in wider[kind] if other in found), None)
        if parent is not None:
            units = len({ratio.unit for ratio in rows})
            own = units / (units + PRIOR_UNITS)
            below = own * below + (1 - own) * parent[0]
            above = own * above + (1 - own) * parent[1]
        found[kind] = (below, above, num_rows)
    return found


def table_of(spreads: dict[Figure, Spreads], stretch: dict[Figure, float]) -> BandTable:
    cells = [
        BandCell(
            figure=figure, architecture=kind[0], engine=kind[1], experts=kind[2],
            several_gpus=kind[3], loaded=kind[4], rows=rows,
            low=round(max(1 / MOST, math.exp(stretch[figure] * below)), 3),
            high=round(min(MOST, math.exp(stretch[figure] * above)), 3),
        )
        for figure, kinds_of in spreads.items()
        for kind, (below, above, rows) in kinds_of.items()
    ]  # fmt: skip
    return BandTable(coverage=COVERAGE, sources=("measured runs",), cells=tuple(cells))


Tested = tuple[Ratio, float, float]  # with the spreads of a table made without its unit


def held_out(ratios: Sequence[Ratio]) -> list[Tested]:
    """Each row with the spreads of its kind among the other units."""
    found = []
    for unit in sorted({ratio.unit for ratio in ratios}):
        spreads = spreads_of([ratio for ratio in ratios if ratio.unit != unit])
        for ratio in ratios:
            if ratio.unit == unit:
                kind = next(kind for kind in kinds(ratio.key) if kind in spreads)
                found.append((ratio, *spreads[kind][:2]))
    return found


def covered(tested: Sequence[Tested], stretch: float) -> float:
    inside = sum(
        stretch * below <= math.log(ratio.value) <= stretch * above
        for ratio, below, above in tested
    )
    return inside / len(tested)


def _kind(ratio: Ratio) -> str:
    """`dense, below 85 % load`."""
    key = ratio.key
    cell = BandCell(
        figure=ratio.figure, experts=key.experts, loaded=key.loaded, low=1.0, high=1.0, rows=1
    )
    return describe(cell)


def report(name: str, tested: Sequence[Tested], stretch: float) -> None:
    lows = sorted(math.exp(stretch * below) - 1 for _, below, _ in tested)
    highs = sorted(math.exp(stretch * above) - 1 for *_, above in tested)
    print(
        f"{name:48}{len(tested):6}{covered(tested, stretch):9.1%}"
        f"{quantile(lows, 0.5):+9.1%}{quantile(highs, 0.5):+9.1%}"
    )


def write(table: BandTable, source: str) -> None:
    """The table as JSON, one line a cell."""
    ordered = sorted(
        table.cells,
        key=lambda cell: (
            list(FIGURES).index(cell.figure), cell.architecture or "~", cell.engine or "~",
            str(cell.experts), str(cell.several_gpus), str(cell.loaded),
        ),
    )  # fmt: skip
    head = {
        "note": "Written by benchmarks/error_bands.py: measured / predicted, by kind of row.",
        "coverage": COVERAGE,
        "sources": [source],
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    cells = ",\n".join(f"    {json.dumps(cell.model_dump(exclude_none=True))}" for cell in ordered)
    text = "\n".join(["{", *lines, '  "cells": [', cells, "  ]", "}"])
    FILE.write_text(text + "\n", encoding="utf-8")


def read_predictions(path: Path) -> dict[str, dict[str, float]]:
    with path.open(newline="") as handle:
        return {
            row["id"]: {name: float(row[name]) for name in METRICS if row.get(name)}
            for row in csv.DictReader(handle)
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table into the package")
    parser.add_argument("--keep", type=Path, help="keep the ratios in a file, for another try")
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        ratios = pickle.loads(arguments.keep.read_bytes())
    else:
        runs = [
            run
            for run in read_measured(arguments.measured)
            if run.columns.get("core", "1") == "1" and run.columns.get("suspect") != "1"
        ]
        known = read_predictions(arguments.predictions) if arguments.predictions else None
        jobs = [(run, known.get(run.id, {}) if known is not None else None) for run in runs]
        with ProcessPoolExecutor() as pool:
            ratios = list(itertools.chain.from_iterable(pool.map(_one, jobs, chunksize=20)))
        if arguments.keep:
            arguments.keep.write_bytes(pickle.dumps(ratios))
    spreads: dict[Figure, Spreads] = {}
    stretch: dict[Figure, float] = {}
    print(f"{'held-out rows of':48}{'rows':>6}{'inside':>9}{'low':>9}{'high':>9}")
    for figure in FIGURES:
        own = [ratio for ratio in ratios if ratio.figure == figure]
        tested = held_out(own)
        spreads[figure] = spreads_of(own)
        stretch[figure] = next(
            (by for by in STRETCHES if covered(tested, by) >= COVERAGE), STRETCHES[-1]
        )
        report(figure, tested, stretch[figure])
        for is_left_out in sorted({ratio.is_left_out for ratio in own}):
            some = [entry for entry in tested if entry[0].is_left_out is is_left_out]
            report(f"  {'cross-validated' if is_left_out else 'as fitted'}", some, stretch[figure])
        for name in sorted({_kind(ratio) for ratio in own}):
            some = [entry for entry in tested if _kind(entry[0]) == name]
            report(f"  {name}", some, stretch[figure])
        for name in sorted({ratio.key.architecture for ratio in own}):
            some = [entry for entry in tested if entry[0].key.architecture == name]
            report(f"  {name}", some, stretch[figure])
        for name in sorted({ratio.key.engine for ratio in own}):
            some = [entry for entry in tested if entry[0].key.engine == name]
            report(f"  {name}", some, stretch[figure])
    if arguments.write:
        write(table_of(spreads, stretch), arguments.measured.name)
        print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
