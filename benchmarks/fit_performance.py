"""Fit of the step model to measured runs: robust, with priors, cross-validated.

    python benchmarks/fit_performance.py MEASURED.csv            fit on all core rows, report
        --rounds N        emulations, with four Gauss-Newton steps after each (default 2)
        --cross-validate K  leave out each of K folds of source x architecture groups
        --left-out CSV    write the predictions of rows left out (benchmarks/error_bands.py)
        --ablate          what each term buys: refits without it
        --write           write the constants into capplan/architectures and capplan/engines

Fits on core rows that are not suspect; scores what docs/accuracy.md scores. Needs the extra `fit`.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from performance_params import Name, World, parameters
from performance_rows import FRONT_END, RUN, TPOT, TTFT, Evaluator, Row, core_rows, scored, trace

from capplan.accuracy.measured import METRICS

SCALE = {"TPOT": 0.1, "throughput": 0.1, "TTFT": 0.3, "TPOT static": 0.15, "TTFT static": 0.3}
LITTLE = 0.15  # weight of rows that say little
GROUP_ROWS = 12  # of one source and GPU, beyond which more rows add less
STEPS, DIFFERENCE, LONGEST = 4, 0.03, 0.5
Masks = dict[Name, np.ndarray]


class Problem:
    """The compared figures of all rows, and how far a set of parameters is from them."""

    def __init__(self, evaluator: Evaluator, start: World) -> None:
        self.rows = evaluator.rows
        items = [
            (at, kind, row.metrics[column], row.run.metrics[column])
            for at, row in enumerate(self.rows)
            for kind, column in scored(row.run)
            if row.metrics.get(column, 0) > 0
        ]
        self.at = np.array([item[0] for item in items])
        self.kind = np.array([item[1] for item in items])
        self.emulated = np.array([item[2] for item in items])
        self.measured = np.array([item[3] for item in items])
        self.scale = np.array([SCALE[kind] for kind in self.kind])
        self.suspect = np.array([self.rows[at].is_suspect for at in self.at])
        sizes: dict[tuple[str, str], int] = defaultdict(int)
        for at in dict.fromkeys(self.at.tolist()):
            sizes[self._source(at)] += 1
        self.weight = np.array(
            [
                min(1.0, (GROUP_ROWS / sizes[self._source(at)]) ** 0.5)
                * (LITTLE if self.rows[at].says_little else 1.0)
                for at in self.at
            ]
        )
        self.start = evaluator.sums(start)

    def _source(self, at: int) -> tuple[str, str]:
        return self.rows[at].run.columns["source_group"], self.rows[at].run.gpu

    def log_predicted(self, sums: np.ndarray) -> np.ndarray:
        """The emulated figures moved as the sums move."""
        new, old = sums[self.at], self.start[self.at]
        ratio = old[:, RUN] / new[:, RUN]
        is_tpot = np.char.startswith(self.kind, "TPOT")
        is_ttft = np.char.startswith(self.kind, "TTFT")
        tpot = new[:, TPOT] / np.maximum(old[:, TPOT], 1e-12)
        waits = [part[:, TTFT] + part[:, FRONT_END] for part in (new, old)]
        ttft = waits[0] / np.maximum(waits[1], 1e-12)
        ratio = np.where(is_tpot, tpot, np.where(is_ttft, ttft, ratio))
        return np.log(np.maximum(self.emulated * ratio, 1e-12))

    def errors(self, sums: np.ndarray) -> np.ndarray:
        return self.log_predicted(sums) - np.log(self.measured)


def fit(
    evaluator: Evaluator,
    problem: Problem,
    spread: dict[Name, float],
    start: dict[Name, float],
    use: np.ndarray,
    steps: int = STEPS,
) -> dict[Name, float]:
    """Gauss-Newton on the Cauchy loss of the log errors, with the ridge of the priors."""
    names = list(spread)
    sigma = np.array([spread[name] for name in names])
    x = np.array([start.get(name, 0.0) for name in names])
    masks = {n: np.array([problem.rows[a].owners.has(n) for a in problem.at]) for n in names}

    def residuals(at: np.ndarray) -> np.ndarray:
        sums = evaluator.sums(World(dict(zip(names, at, strict=True))))
        return problem.errors(sums) / problem.scale

    def cost(r: np.ndarray, at: np.ndarray) -> float:
        loss = (problem.weight * np.log1p(r**2 / 4) * 2)[use].sum()
        return float(loss + 0.5 * np.sum((at / sigma) ** 2))

    r, damping = residuals(x), 0.1
    for _ in range(steps):
        jacobian = _jacobian(residuals, names, masks, x, r)
        weight = problem.weight / (1 + r**2 / 4) * use
        normal = jacobian.T @ (weight[:, None] * jacobian) + np.diag(1 / sigma**2)
        gradient = jacobian.T @ (weight * r) + x / sigma**2
        for _ in range(6):
            step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            new = x + np.clip(step, -LONGEST, LONGEST)
            found = residuals(new)
            if cost(found, new) < cost(r, x):
                x, r, damping = new, found, max(damping / 3, 1e-3)
                break
            damping *= 4
        else:
            break
    return dict(zip(names, x, strict=True))


def _jacobian(
    residuals: Callable[[np.ndarray], np.ndarray],
    names: list[Name],
    masks: Masks,
    x: np.ndarray,
    r: np.ndarray,
) -> np.ndarray:
    """Own parameters of one kind are moved at once, as each row depends on one of them.

    A common parameter moves a row as the row's own of the same kind does.
    """
    jacobian = np.zeros((len(r), len(names)))
    for kind, which in sorted({(name[0], name[2]) for name in names}):
        like = [i for i, name in enumerate(names) if (name[0], name[2]) == (kind, which)]
        own = [i for i in like if not is_common(names[i])]
        moved = x.copy()
        moved[own] += DIFFERENCE
        slope = (residuals(moved) - r) / DIFFERENCE
        for i in like:
            jacobian[:, i] = np.where(masks[names[i]], slope, 0.0)
    return jacobian


def is_common(name: Name) -> bool:
    return name[1] == "*" or (name[0] == "fmt" and isinstance(name[1], str))


def table(
    title: str, problem: Problem, errors: np.ndarray, by: Callable[[Row], str] | None = None
) -> None:
    """Median, mean and 90th percentile of the absolute error, and the bias."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for at, kind, error in zip(problem.at, problem.kind, np.expm1(errors), strict=True):
        groups[str(kind), by(problem.rows[at]) if by else ""].append(float(error))
    print(f"{title:14s} {'':44s}     n  median    mean     90th  bias")
    for (kind, name), values in sorted(groups.items()):
        off = np.abs(values)
        print(
            f"{kind:14s} {name:44s} {len(off):5d} {np.median(off):7.1%} {off.mean():7.1%}"
            f" {np.quantile(off, 0.9):8.1%} {1 + np.median(values):5.2f}"
        )


BREAKDOWNS: dict[str, Callable[[Row], str]] = {
    "GPU": lambda row: row.run.gpu,
    "engine": lambda row: row.overheads.name,
    "TP": lambda row: f"TP {row.settings.tp}, DP {row.settings.dp}",
    "dense or MoE": lambda row: "MoE" if row.owners.moe else "dense",
    "format": lambda row: row.owners.fmt[1],
}


def cross_validate(evaluator: Evaluator, problem: Problem, folds: int) -> np.ndarray:
    """Errors of each row at parameters fitted without its source x architecture group."""
    groups = sorted({row.group for row in problem.rows})
    random.Random(3).shuffle(groups)
    fold = {group: at % folds for at, group in enumerate(groups)}
    of = np.array([fold[problem.rows[at].group] for at in problem.at])
    spread = parameters(row.owners for row in problem.rows)
    errors = np.zeros(len(of))
    for k in range(folds):
        theta = fit(evaluator, problem, spread, {}, (of != k) & ~problem.suspect)
        errors[of == k] = problem.errors(evaluator.sums(World(theta)))[of == k]
    return errors


# What moves with each compared figure.
FAMILIES = {
    "TPOT": ("tpot_mean_ms", "tpot_p50_ms", "tpot_p99_ms", "itl_mean_ms"),
    "TTFT": ("ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms"),
    "throughput": ("output_tok_s", "total_tok_s", "req_s"),
}


def write_left_out(path: Path, problem: Problem, errors: np.ndarray) -> None:
    """Predictions of rows that were left out, for `error_bands.py --predictions`."""
    factors = np.exp(errors) * problem.measured / problem.emulated
    moved: dict[int, dict[str, float]] = defaultdict(dict)
    for at, kind, factor in zip(problem.at.tolist(), problem.kind, factors, strict=True):
        metrics = problem.rows[at].metrics
        for name in FAMILIES[str(kind).split()[0]]:
            if name in metrics:
                moved[at][name] = metrics[name] * float(factor)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["id", *METRICS])
        writer.writeheader()
        for at, metrics in sorted(moved.items()):
            writer.writerow({"id": problem.rows[at].run.id, **metrics})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("measured", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cross-validate", type=int, default=0, metavar="K")
    parser.add_argument("--left-out", type=Path, metavar="CSV")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    runs = core_rows(options.measured)
    theta: dict[Name, float] = {}
    for _ in range(options.rounds):
        start = World(theta)
        evaluator = Evaluator(trace(runs, start))
        problem = Problem(evaluator, start)
        spread = parameters(row.owners for row in problem.rows)
        theta = fit(evaluator, problem, spread, theta, ~problem.suspect)
    errors = problem.errors(evaluator.sums(World(theta)))
    table("fitted", problem, errors)
    if options.write:
        from performance_constants import write

        write(theta, problem.rows)
    if options.cross_validate:
        errors = cross_validate(evaluator, problem, options.cross_validate)
        table("left out", problem, errors)
        if options.left_out:
            write_left_out(options.left_out, problem, errors)
        for title, by in BREAKDOWNS.items():
            table(title, problem, errors, by)
    if options.ablate:
        from performance_ablation import ablate

        ablate(evaluator, problem, spread, theta)


if __name__ == "__main__":
    main()
