"""Gauss-Newton on a robust loss with priors, once exactly and many times on one linearisation.

The errors of all rows are smooth in the parameters, and nearly linear between the whole fit and
a fit without some rows. So leaving rows out costs milliseconds: one Jacobian serves every fold,
and only the errors that are reported are evaluated exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from performance_params import Name, World, is_common
from performance_rows import FRONT_END, RUN, TPOT, TTFT, Evaluator, Row, scored

SCALE = {"TPOT": 0.1, "throughput": 0.1, "TTFT": 0.3, "TPOT static": 0.15, "TTFT static": 0.3}
# Of these scales: beyond it a row's pull falls. Chosen, as the widths of the priors are, by the
# errors of rows left out.
CAUCHY = 0.6
LITTLE = 0.15  # weight of rows that say little
GROUP_ROWS = 12  # of one source and GPU, beyond which more rows add less
STEPS, DIFFERENCE, LONGEST = 4, 0.03, 0.5
Theta = dict[Name, float]


class Problem:
    """The compared figures of all rows, and how far a set of parameters is from them."""

    def __init__(self, evaluator: Evaluator, start: World) -> None:
        self.evaluator = evaluator
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

    def errors_of(self, sums: np.ndarray) -> np.ndarray:
        return self.log_predicted(sums) - np.log(self.measured)

    def errors(self, theta: Theta, only: np.ndarray | None = None) -> np.ndarray:
        """log(predicted / measured) of every figure, or at least of those of ``only``."""
        rows = None if only is None else set(self.at[only].tolist())
        return self.errors_of(self.evaluator.sums(World(theta), only=rows))

    def units(self, unit_of: Callable[[Row], str]) -> np.ndarray:
        """The unit of each figure's row."""
        return np.array([unit_of(self.rows[at]) for at in self.at])


def robust_weights(problem: Problem, errors: np.ndarray) -> np.ndarray:
    """Of squared scaled errors in each iteration: the Cauchy loss's."""
    return problem.weight / (1 + (errors / problem.scale / CAUCHY) ** 2)


def fit(
    problem: Problem,
    spread: Theta,
    start: Theta,
    use: np.ndarray,
    steps: int = STEPS,
) -> Theta:
    """Gauss-Newton on the Cauchy loss of the log errors, with the ridge of the priors."""
    names = list(spread)
    sigma = np.array([spread[name] for name in names])
    x = np.array([start.get(name, 0.0) for name in names])
    scale = problem.scale

    def errors(at: np.ndarray) -> np.ndarray:
        return problem.errors(dict(zip(names, at, strict=True)))

    def cost(r: np.ndarray, at: np.ndarray) -> float:
        half = CAUCHY**2 / 2
        loss = (problem.weight * np.log1p((r / scale / CAUCHY) ** 2) * half)[use].sum()
        return float(loss + 0.5 * np.sum((at / sigma) ** 2))

    r, damping = errors(x), 0.1
    for _ in range(steps):
        jacobian = _jacobian(errors, problem, names, x, r) / scale[:, None]
        weight = robust_weights(problem, r) * use
        normal = jacobian.T @ (weight[:, None] * jacobian) + np.diag(1 / sigma**2)
        gradient = jacobian.T @ (weight * r / scale) + x / sigma**2
        for _ in range(6):
            step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            new = x + np.clip(step, -LONGEST, LONGEST)
            found = errors(new)
            if cost(found, new) < cost(r, x):
                x, r, damping = new, found, max(damping / 3, 1e-3)
                break
            damping *= 4
        else:
            break
    return dict(zip(names, x.tolist(), strict=True))


@dataclass(frozen=True)
class Linear:
    """The errors as a linear function of the parameters, around those of a whole fit."""

    problem: Problem
    names: Sequence[Name]
    sigma: np.ndarray
    at: np.ndarray
    errors: np.ndarray
    jacobian: np.ndarray

    def refit(self, use: np.ndarray, iterations: int = 10) -> Theta:
        """The parameters that fit the figures of ``use``: robust, with the same priors."""
        scale = self.problem.scale[use]
        jacobian = self.jacobian[use] / scale[:, None]
        # Errors at parameters of nought, by the same line.
        offset = self.errors[use] / scale - jacobian @ self.at
        ridge, x = np.diag(1 / self.sigma**2), self.at
        for _ in range(iterations):
            errors = offset + jacobian @ x
            weight = self.problem.weight[use] / (1 + (errors / CAUCHY) ** 2)
            normal = jacobian.T @ (weight[:, None] * jacobian) + ridge
            new = -np.linalg.solve(normal, jacobian.T @ (weight * offset))
            moved, x = np.abs(new - x).max(), new
            if moved < 2e-3:
                break
        return dict(zip(self.names, x.tolist(), strict=True))

    def without(self, drop: Callable[[Name], bool]) -> Linear:
        """The same with some parameters held at their priors."""
        gone = np.array([drop(name) for name in self.names])
        return replace(
            self,
            names=[name for name in self.names if not drop(name)],
            sigma=self.sigma[~gone],
            at=self.at[~gone],
            errors=self.errors - self.jacobian[:, gone] @ self.at[gone],
            jacobian=self.jacobian[:, ~gone],
        )


def linearise(problem: Problem, spread: Theta, theta: Theta) -> Linear:
    names = list(spread)
    at = np.array([theta.get(name, 0.0) for name in names])

    def errors(x: np.ndarray) -> np.ndarray:
        return problem.errors(dict(zip(names, x, strict=True)))

    found = errors(at)
    jacobian = _jacobian(errors, problem, names, at, found)
    return Linear(problem, names, np.array(list(spread.values())), at, found, jacobian)


def _jacobian(
    errors: Callable[[np.ndarray], np.ndarray],
    problem: Problem,
    names: Sequence[Name],
    x: np.ndarray,
    at_x: np.ndarray,
) -> np.ndarray:
    """Parameters of one kind are moved at once, as each row depends on one sum of them.

    A common parameter moves a row as the row's own of the same kind does.
    """
    jacobian = np.zeros((len(at_x), len(names)))
    owners = [problem.rows[at].owners for at in problem.at]
    for kind, which in sorted({(name[0], name[2]) for name in names}):
        like = [i for i, name in enumerate(names) if (name[0], name[2]) == (kind, which)]
        # One level of them: moving several would move a row by the sum of its levels.
        own = [i for i in like if not is_common(names[i])] or like
        moved = x.copy()
        moved[own] += DIFFERENCE
        slope = (errors(moved) - at_x) / DIFFERENCE
        for i in like:
            mask = np.array([owner.has(names[i]) for owner in owners])
            jacobian[:, i] = np.where(mask, slope, 0.0)
    return jacobian
