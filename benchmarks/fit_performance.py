"""Fit of the step model to measured runs: robust, with priors, cross-validated.

    python benchmarks/fit_performance.py MEASURED.csv            fit on all core rows, report
        --rounds N        emulations, with four Gauss-Newton steps after each (default 2)
        --keep FILE       keep the emulated rows and the fit, for another try from there; with
                          --rounds 0 on the same rows
        --cross-validate  leave out each source x generation, and each source x model
        --left-out STEM   emulate rows left out, into STEM-generation.csv and STEM-model.csv
        --ablate          what each term buys: refits without it
        --write           write the constants into capplan/architectures

Fits on core rows that are not suspect; scores what docs/accuracy.md scores. Needs the extra `fit`.
"""

from __future__ import annotations

import argparse
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from performance_constants import write
from performance_fit import Linear, Problem, Theta, fit, linearise
from performance_folds import UNITS, emulate_left_out, leave_out, traced, write_predictions
from performance_params import World, parameters
from performance_rows import Evaluator, Row, core_rows


def table(
    title: str, problem: Problem, errors: np.ndarray, by: Callable[[Row], str] | None = None
) -> None:
    """Median, mean and 90th percentile of the absolute error, and the bias."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for at, kind, error in zip(problem.at, problem.kind, np.expm1(errors), strict=True):
        if np.isnan(error):
            continue
        groups[str(kind), by(problem.rows[at]) if by else ""].append(float(error))
    print(f"{title:14s} {'':44s}     n  median    mean     90th  bias")
    for (kind, name), values in sorted(groups.items()):
        off = np.abs(values)
        print(
            f"{kind:14s} {name:44s} {len(off):5d} {np.median(off):7.1%} {off.mean():7.1%}"
            f" {np.quantile(off, 0.9):8.1%} {1 + np.median(values):5.2f}"
        )
    print(flush=True)


BREAKDOWNS: dict[str, Callable[[Row], str]] = {
    "GPU": lambda row: row.run.gpu,
    "engine": lambda row: row.overheads.name,
    "TP": lambda row: f"TP {row.settings.tp}, DP {row.settings.dp}",
    "dense or MoE": lambda row: "MoE" if row.owners.moe else "dense",
    "format": lambda row: row.owners.fmt[1],
}


def priors(problem: Problem) -> Theta:
    return parameters(row.owners for row in problem.rows)


def steering(problem: Problem) -> np.ndarray:
    """The figures of rows that steer the fit in full."""
    rows = [problem.rows[at] for at in problem.at]
    return np.array([not (row.is_suspect or row.says_little) for row in rows])


def cross_validate(linear: Linear, stem: Path | None) -> None:
    """Tables of rows left out; with a stem, their emulated predictions as files."""
    problem = linear.problem
    for kind in UNITS:
        left_out = leave_out(linear, kind)
        table(f"source x {kind} left out: {len(left_out.thetas)} units", problem, left_out.errors)
        some = np.where(steering(problem), left_out.errors, np.nan)
        table("  of these the rows that steer", problem, some)
        for title, by in BREAKDOWNS.items():
            table(f"  by {title}", problem, left_out.errors, by)
        if stem is not None:
            rows = emulate_left_out(linear, kind, left_out)
            write_predictions(stem.with_name(f"{stem.name}-{kind}.csv"), rows)
            world = World()
            emulated = Problem(Evaluator(rows), world)
            errors = np.log(emulated.emulated / emulated.measured)
            table(f"source x {kind} left out, emulated anew", emulated, errors)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("measured", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--cross-validate", action="store_true")
    parser.add_argument("--left-out", type=Path, metavar="STEM")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    runs = core_rows(options.measured)
    problem, theta = None, {}
    if options.keep and options.keep.exists():
        problem, theta = pickle.loads(options.keep.read_bytes())
    for _ in range(options.rounds):
        problem = Problem(Evaluator(traced([(runs, theta)])), World(theta))
        theta = fit(problem, priors(problem), theta, ~problem.suspect)
    if problem is None:
        parser.error("--rounds 0 needs the rows of an earlier run: --keep FILE")
    if options.rounds == 0:
        theta = fit(problem, priors(problem), theta, ~problem.suspect)
    elif options.keep:
        options.keep.write_bytes(pickle.dumps((problem, theta)))
    spread = priors(problem)
    print(f"{len(spread)} parameters, {len(problem.rows)} rows, {len(problem.at)} figures")
    table("fitted", problem, problem.errors(theta))
    if options.write:
        write(theta, problem.rows)
    linear = linearise(problem, spread, theta)
    if options.cross_validate or options.left_out:
        cross_validate(linear, options.left_out)
    if options.ablate:
        from performance_ablation import ablate

        ablate(linear)


if __name__ == "__main__":
    main()
