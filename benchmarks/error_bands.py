"""The table of error bands from measured rows, and whether held-out rows fall inside.

usage: python benchmarks/error_bands.py MEASURED.csv --predictions CSV [CSV...] [--write]

`--predictions` are `id` and the metric columns: every row of the core predicted by constants that
were fitted without it (fit_performance.py --left-out: without its source and generation, and
without its source and model; each counts half). log(measured / predicted) is taken for each figure.

A kind of rows (a cell) has two spreads, below and above: where the middle two thirds end, drawn
towards those of the next wider kind as far as few independent units (source x GPU generation)
stand behind the cell. The spreads of a figure are then stretched, each class of rows (dense or
experts, load) by a factor: so far that four of five rows of the class fall inside bands that were
made without the row's own unit. One factor for all would widen the classes that are well known.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from capplan.accuracy.client_metrics import quantile
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import METRICS, MeasuredRun, read_measured
from capplan.accuracy.predict import Prediction
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


def ratios_of(run: MeasuredRun, predictions: Iterable[Prediction]) -> list[Ratio]:
    """Of one row under each of its predictions; none where it cannot be predicted."""
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
    unit = (run.columns.get("source_group", ""), key.architecture)
    found = []
    for pairs in (pairs_of(run, prediction) for prediction in predictions):
        for figure, (columns, workloads) in FIGURES.items():
            pair = first_of(pairs, columns) if run.workload in workloads else None
            if pair is not None and pair.predicted:
                found.append(Ratio(figure, key, unit, pair.measured / pair.predicted, run.id))
    return found


def _one(job: tuple[MeasuredRun, list[dict[str, float]]]) -> list[Ratio]:
    run, predictions = job
    return ratios_of(run, [Prediction(run.id, found, None, ()) for found in predictions])


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


Class = tuple[bool | None, bool | None]  # experts, load
Stretches = dict[Class, float]


def stretch_of(stretches: Stretches, kind: Kind) -> float:
    """Of a cell: its class's, or where it holds several classes the widest of theirs."""
    _, _, experts, _, loaded = kind
    return max(
        stretch
        for (has_experts, is_loaded), stretch in stretches.items()
        if experts in (None, has_experts) and loaded in (None, is_loaded)
    )


def table_of(spreads: dict[Figure, Spreads], stretches: dict[Figure, Stretches]) -> BandTable:
    cells = [
        BandCell(
            figure=figure, architecture=kind[0], engine=kind[1], experts=kind[2],
            several_gpus=kind[3], loaded=kind[4], rows=rows,
            low=round(max(1 / MOST, math.exp(stretch_of(stretches[figure], kind) * below)), 3),
            high=round(min(MOST, math.exp(stretch_of(stretches[figure], kind) * above)), 3),
        )
        for figure, kinds_of in spreads.items()
        for kind, (below, above, rows) in kinds_of.items()
    ]  # fmt: skip
    return BandTable(coverage=COVERAGE, sources=("measured runs",), cells=tuple(cells))


Tested = tuple[Ratio, float, float]  # with the band of a table made without its unit


def held_out(ratios: Sequence[Ratio]) -> list[tuple[Ratio, Kind, float, float]]:
    """Each row with the spreads of its kind among the other units."""
    found = []
    for unit in sorted({ratio.unit for ratio in ratios}):
        spreads = spreads_of([ratio for ratio in ratios if ratio.unit != unit])
        for ratio in ratios:
            if ratio.unit == unit:
                kind = next(kind for kind in kinds(ratio.key) if kind in spreads)
                found.append((ratio, kind, *spreads[kind][:2]))
    return found


def covered(tested: Iterable[Tested], stretch: float = 1.0) -> float:
    inside = [
        stretch * below <= math.log(ratio.value) <= stretch * above
        for ratio, below, above in tested
    ]
    return sum(inside) / len(inside)


def stretches_of(tested: Sequence[tuple[Ratio, Kind, float, float]]) -> Stretches:
    """For each class of rows the least that covers; a class of few units leans on all rows."""
    found: Stretches = {}
    whole = _least([(ratio, *spread) for ratio, _, *spread in tested])  # type: ignore[misc]
    for experts, loaded in itertools.product((False, True), repeat=2):
        of = [t for t in tested if (t[0].key.experts, t[0].key.loaded) == (experts, loaded)]
        units = len({ratio.unit for ratio, *_ in of})
        own = _least([(ratio, *spread) for ratio, _, *spread in of]) if of else whole  # type: ignore[misc]
        share = units / (units + PRIOR_UNITS)
        found[experts, loaded] = share * own + (1 - share) * whole
    return found


def _least(tested: Sequence[Tested]) -> float:
    return next((by for by in STRETCHES if covered(tested, by) >= COVERAGE), STRETCHES[-1])


def _kind(ratio: Ratio) -> str:
    """`dense, below 85 % load`."""
    key = ratio.key
    cell = BandCell(
        figure=ratio.figure, experts=key.experts, loaded=key.loaded, low=1.0, high=1.0, rows=1
    )
    return describe(cell)


def report(name: str, tested: Sequence[Tested]) -> None:
    lows = sorted(math.exp(below) - 1 for _, below, _ in tested)
    highs = sorted(math.exp(above) - 1 for *_, above in tested)
    print(
        f"{name:48}{len(tested):6}{covered(tested):9.1%}"
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


def gathered(measured: Path, predictions: Sequence[Path]) -> list[Ratio]:
    """The ratios of all core rows that are not suspect."""
    runs = [
        run
        for run in read_measured(measured)
        if run.columns.get("core", "1") == "1" and run.columns.get("suspect") != "1"
    ]
    known = [read_predictions(path) for path in predictions]
    jobs = [(run, [found[run.id] for found in known if run.id in found]) for run in runs]
    with ProcessPoolExecutor() as pool:
        return list(itertools.chain.from_iterable(pool.map(_one, jobs, chunksize=20)))


GROUPS: tuple[Callable[[Ratio], str], ...] = (
    _kind,
    lambda ratio: ratio.key.architecture,
    lambda ratio: ratio.key.engine,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--predictions", type=Path, nargs="+", required=True)
    parser.add_argument("--write", action="store_true", help="write the table into the package")
    parser.add_argument("--keep", type=Path, help="keep the ratios in a file, for another try")
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        ratios = pickle.loads(arguments.keep.read_bytes())
    else:
        ratios = gathered(arguments.measured, arguments.predictions)
        if arguments.keep:
            arguments.keep.write_bytes(pickle.dumps(ratios))
    spreads: dict[Figure, Spreads] = {}
    stretches: dict[Figure, Stretches] = {}
    print(f"{'held-out rows of':48}{'rows':>6}{'inside':>9}{'low':>9}{'high':>9}")
    for figure in FIGURES:
        own = [ratio for ratio in ratios if ratio.figure == figure]
        kept_out = held_out(own)
        spreads[figure], stretches[figure] = spreads_of(own), stretches_of(kept_out)
        tested: list[Tested] = []
        for ratio, kind, below, above in kept_out:
            by = stretch_of(stretches[figure], kind)
            tested.append((ratio, by * below, by * above))
        report(figure, tested)
        for group_of in GROUPS:
            for name in sorted({group_of(ratio) for ratio in own}):
                report(f"  {name}", [entry for entry in tested if group_of(entry[0]) == name])
    if arguments.write:
        write(table_of(spreads, stretches), arguments.measured.name)
        print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
