"""How much public measurements of the same configuration differ: the floor of any prediction.

usage: python benchmarks/accuracy_floor.py MEASURED.csv

Rows are the same configuration where model, weight format, GPU and their number, parallelism,
engine, load and lengths are equal. Pairs of two versions or dates of one source, and of two
sources, are compared: |a - b| / their mean. Only the measured table is read.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from capplan.accuracy.client_metrics import quantile
from capplan.accuracy.engines import engine_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.names import hardware_of, model_of
from capplan.accuracy.score import THROUGHPUT, TPOT, TTFT
from capplan.errors import CapplanError

FIGURES = {"TPOT": TPOT, "throughput": THROUGHPUT, "TTFT": TTFT}


def configuration(run: MeasuredRun) -> tuple[object, ...] | None:
    """What has to be equal; None where the row does not say enough."""
    try:
        named, hardware, engine = model_of(run), hardware_of(run), engine_of(run)
    except CapplanError:
        return None
    if run.isl is None or run.osl is None:
        return None
    return (
        named.found.id, named.dtype, hardware.id, run.num_gpus, run.tp, run.pp or 1, run.ep or 1,
        run.attention_dp, engine.kind, run.workload, run.concurrency, run.request_rate_qps,
        round(run.isl, -1), round(run.osl, -1),
    )  # fmt: skip


def pairs(runs: list[MeasuredRun]) -> Iterator[tuple[MeasuredRun, MeasuredRun]]:
    """Two rows of a configuration from different runs: another source, version or date."""
    for one, two in itertools.combinations(runs, 2):
        if origin(one) != origin(two):
            yield one, two


def origin(run: MeasuredRun) -> tuple[str, str, str]:
    return run.columns.get("source_group", ""), run.engine_version, run.source_date


def difference(one: MeasuredRun, two: MeasuredRun, columns: tuple[str, ...]) -> float | None:
    name = next((name for name in columns if name in one.scored and name in two.scored), None)
    if name is None:
        return None
    a, b = one.scored[name], two.scored[name]
    return abs(a - b) / ((a + b) / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    runs = read_measured(parser.parse_args().measured)
    alike: dict[tuple[object, ...], list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        key = configuration(run)
        if key is not None and run.columns.get("suspect") != "1":
            alike[key].append(run)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for members in alike.values():
        for one, two in pairs(members):
            same = one.columns.get("source_group") == two.columns.get("source_group")
            kind = "another version or date, same source" if same else "another source"
            for figure, columns in FIGURES.items():
                size = difference(one, two, columns)
                if size is not None:
                    found[figure, kind].append(size)
    print(f"{'figure':12}{'pair':40}{'pairs':>6}{'median':>9}{'mean':>9}{'90th':>9}")
    for (figure, kind), sizes in sorted(found.items()):
        sizes.sort()
        print(
            f"{figure:12}{kind:40}{len(sizes):6}{quantile(sizes, 0.5):9.1%}"
            f"{statistics.fmean(sizes):9.1%}{quantile(sizes, 0.9):9.1%}"
        )


if __name__ == "__main__":
    main()
