"""Rows predicted by constants that were fitted without them.

Two kinds of units are left out, one unit at a time: a source's rows of one generation of GPUs,
and a source's rows of one model. What a new server is like lies between the two. Leaving out one
at a time has no draw in it: a change of the figures is a change of the model.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from performance_fit import Linear, Theta
from performance_params import World
from performance_rows import Row, trace

from capplan.accuracy.measured import METRICS, MeasuredRun

UNITS: dict[str, Callable[[Row], str]] = {
    "generation": lambda row: f"{row.run.columns['source_group']}, {row.owners.arch}",
    "model": lambda row: f"{row.run.columns['source_group']}, {row.settings.model_id}",
}
CHUNK = 25  # runs that share servers in one process


@dataclass(frozen=True)
class LeftOut:
    """Of one kind of unit: errors of all figures, and the constants that each unit met."""

    errors: np.ndarray
    thetas: dict[str, Theta]
    units: np.ndarray


def leave_out(linear: Linear, kind: str) -> LeftOut:
    """Each figure's error at parameters fitted without its unit, its schedule held fast."""
    problem = linear.problem
    units = problem.units(UNITS[kind])
    errors, thetas = np.zeros(len(units)), {}
    for unit in sorted(set(units)):
        mine = units == unit
        thetas[unit] = linear.refit(~mine & ~problem.suspect)
        errors[mine] = problem.errors(thetas[unit], mine)[mine]
    return LeftOut(errors, thetas, units)


def traced(jobs: Sequence[tuple[Sequence[MeasuredRun], Theta]]) -> list[Row]:
    """The runs of each job emulated at its parameters, on all cores."""
    parts = [
        (list(runs[at : at + CHUNK]), theta)
        for runs, theta in jobs
        for at in range(0, len(runs), CHUNK)
    ]
    with ProcessPoolExecutor() as pool:
        return list(itertools.chain.from_iterable(pool.map(_trace, parts)))


def _trace(part: tuple[list[MeasuredRun], Theta]) -> list[Row]:
    runs, theta = part
    return trace(runs, World(theta))


def emulate_left_out(linear: Linear, kind: str, left_out: LeftOut) -> list[Row]:
    """Every row emulated anew at the parameters that were fitted without it."""
    rows, unit_of = linear.problem.rows, UNITS[kind]
    return traced(
        [
            ([row.run for row in rows if unit_of(row) == unit], theta)
            for unit, theta in left_out.thetas.items()
        ]
    )


def write_predictions(path: Path, rows: Sequence[Row]) -> None:
    """`id` and the metric columns, for `error_bands.py --predictions` and for scoring."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["id", *METRICS], extrasaction="ignore")
        writer.writeheader()
        for row in sorted(rows, key=lambda row: row.run.id):
            writer.writerow({"id": row.run.id, **row.metrics})
