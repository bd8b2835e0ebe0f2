"""The table of error bands from measured rows, and whether held-out rows fall inside.

usage: python benchmarks/error_bands.py MEASURED.csv --predictions CSV [CSV...] [--write]

`--predictions` are `id` and the metric columns: every row of the core predicted by constants that
were fitted without it (fit_performance.py --left-out: without its source and generation, and
without its source and model; each counts half). log(measured / predicted) is taken for each figure.

A kind of rows (a cell) has two spreads, below and above: where the middle half of its rows ends,
drawn towards those of a typical unit (source x GPU generation) of the next wider kind as far as
few units stand behind the cell. To these comes a margin, by class of rows, as conformalised
quantile regression adds it (Romano, Patterson and Candes 2019): so wide that four of five rows of
the class fall inside bands that were made without the row's own unit. Classes are by dense or
experts and load, of these by engine, generation and one GPU or several, each drawn towards the
wider one. A margin is added where a factor would widen most what is wide already.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import pickle
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from band_spreads import (
    COVERAGE,
    Margins,
    Ratio,
    Spreads,
    Tested,
    class_of,
    covered,
    held_out,
    margin_of,
    margins_of,
    spreads_of,
)

from capplan.accuracy.client_metrics import quantile
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import METRICS, MeasuredRun, read_measured
from capplan.accuracy.predict import Prediction
from capplan.accuracy.score import THROUGHPUT, TPOT, TTFT, TTFT_P99, first_of, pairs_of
from capplan.accuracy.settings import settings_of
from capplan.accuracy.utilisation import band_key_of
from capplan.errors import CapplanError
from capplan.performance.bands import describe
from capplan.specs.error_bands import FILE, BandCell, BandTable, Figure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
WORTH = 0.2  # of a TPOT band of a dense model below 85 % load, either side: the aim
MOST = 100.0  # beyond it the prediction said nothing
FIGURES: dict[Figure, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tpot": (TPOT, ("closed", "poisson", "constant-rate", "static")),
    "ttft": (TTFT, ("closed", "poisson", "constant-rate")),
    "ttft_p99": (TTFT_P99, ("closed", "poisson", "constant-rate")),
    "throughput": (THROUGHPUT, ("closed", "static", "offline", "burst", "offline-batch")),
}
NAMES: dict[Figure, str] = {
    "tpot": "TPOT", "ttft": "TTFT", "ttft_p99": "TTFT P99", "throughput": "throughput",
}  # fmt: skip


def ratios_of(run: MeasuredRun, predictions: Iterable[Prediction]) -> list[Ratio]:
    """Of one row under each of its predictions; none where it cannot be predicted."""
    try:
        key = band_key_of(settings_of(run), load_of(run))
    except CapplanError:
        return []
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


def table_of(spreads: dict[Figure, Spreads], margins: dict[Figure, Margins]) -> BandTable:
    cells = []
    for figure, kinds_of in spreads.items():
        for kind, (below, above, rows) in kinds_of.items():
            margin = margin_of(margins[figure], class_of(kind))
            low, high = math.exp(min(0.0, below - margin)), math.exp(max(0.0, above + margin))
            cell = BandCell(
                figure=figure, architecture=kind[0], engine=kind[1], experts=kind[2],
                several_gpus=kind[3], loaded=kind[4], rows=rows,
                low=round(max(1 / MOST, low), 3), high=round(min(MOST, high), 3),
            )  # fmt: skip
            cells.append(cell)
    return BandTable(coverage=COVERAGE, sources=("measured runs",), cells=tuple(cells))


def _kind(ratio: Ratio) -> str:
    """`dense, below 85 % load`."""
    key = ratio.key
    cell = BandCell(
        figure=ratio.figure, experts=key.experts, loaded=key.loaded, low=1.0, high=1.0, rows=1
    )
    return describe(cell)


def _engine(ratio: Ratio) -> str:
    return f"{_kind(ratio)}, {ratio.key.engine}"


HEAD = """| held-out rows of | rows | inside | median band | within ±20 % |
| --- | --- | --- | --- | --- |"""


def line(name: str, tested: Sequence[Tested]) -> str:
    """Of a group of rows: how many lay inside, and the bands that they were given."""
    low = quantile(sorted(math.exp(test.below) - 1 for test in tested), 0.5)
    high = quantile(sorted(math.exp(test.above) - 1 for test in tested), 0.5)
    near = sum(abs(test.ratio.value - 1) <= WORTH for test in tested) / len(tested)
    cells = (
        name,
        str(len({test.ratio.row for test in tested})),
        f"{covered(tested):.0%}",
        f"{low:+.0%} to {high:+.0%}".replace("-", "−"),
        f"{near:.0%}",
    )
    return f"| {' | '.join(cells)} |"


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


def put_into_page(name: str, shown: str) -> None:
    """Between the marks of docs/accuracy.md that have this name."""
    page = PAGE.read_text(encoding="utf-8")
    marks = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
    page = re.sub(marks, lambda m: f"{m[1]}{shown}\n{m[2]}", page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


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
    _engine,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--predictions", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--write",
        action="store_true",
        help="into package and docs/accuracy.md",
    )
    parser.add_argument("--keep", type=Path, help="keep the ratios in a file, for another try")
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        ratios = pickle.loads(arguments.keep.read_bytes())
    else:
        ratios = gathered(arguments.measured, arguments.predictions)
        if arguments.keep:
            arguments.keep.write_bytes(pickle.dumps(ratios))
    spreads: dict[Figure, Spreads] = {}
    margins: dict[Figure, Margins] = {}
    lines = [HEAD]
    for figure in FIGURES:
        own = [ratio for ratio in ratios if ratio.figure == figure]
        kept_out = held_out(own)
        spreads[figure], margins[figure] = spreads_of(own), margins_of(kept_out)
        tested = [test.widened(margins[figure]) for test in kept_out]
        lines.append(line(f"**{NAMES[figure]}**", tested))
        for group_of in GROUPS:
            for name in sorted({group_of(ratio) for ratio in own}):
                some = [test for test in tested if group_of(test.ratio) == name]
                lines.append(line(f"{NAMES[figure]}, {name}", some))
    print("\n".join(lines))
    if arguments.write:
        write(table_of(spreads, margins), arguments.measured.name)
        put_into_page("bands", "\n".join(lines))
        print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
