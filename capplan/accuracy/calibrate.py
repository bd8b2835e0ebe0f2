"""Fitting the performance model to one's own servers.

Five numbers, each with a prior that stands for how far servers were found from the model; the
data move them where they can. Maximum a posteriori with a robust loss (Huber 1964): the sum of
rho((log predicted - log measured) / scale) over figures and of (parameter / prior scale)^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.score import THROUGHPUT, TPOT, TTFT, TTFT_P99
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.errors import CapplanError
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.results.calibration import ParameterLearnt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

# (parameter, standard deviation of its prior): the spread of servers around the model. Factors in
# log units; times in seconds.
PRIORS: tuple[tuple[str, float], ...] = (
    ("compute", 0.15),
    ("bandwidth", 0.10),
    ("collective_latency", 0.6),
    ("step_s", 1e-3),
    ("sequence_s", 10e-6),
)
# (figure, columns that state it, scale): how well the model predicts it at best, in log units.
# An infinite scale: nothing is fitted to it, its error is only watched.
FIGURES: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("TPOT", TPOT, 0.06),
    ("throughput", (*THROUGHPUT, "total_tok_s"), 0.08),
    ("TTFT", TTFT, 0.25),
    ("E2E", ("e2e_mean_ms",), 0.08),
    ("TTFT P99", TTFT_P99, math.inf),
)
_HUBER = 1.5  # scales beyond which a figure's pull stops growing
_STEPS = 12
_CONVERGED = 2e-3  # of the prior's scale
# Where the model is a third or three times of a server, it is another server.
_FARTHEST = {"compute": math.log(3), "bandwidth": math.log(3), "collective_latency": math.log(20),
             "step_s": 0.1, "sequence_s": 1e-3}  # fmt: skip
# Posterior over prior spread below which the data, not the prior, set a parameter.
_IDENTIFIED = 0.5
_LEAST_FIGURES = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure of a run."""

    run: int
    name: str
    column: str
    measured: float
    scale: float

    @property
    def is_fitted(self) -> bool:
        return math.isfinite(self.scale)


@dataclass(frozen=True, slots=True)
class Fit:
    """``errors_*`` are log predicted / measured for each figure.

    ``left_out`` predicts each run by a fit to all other runs (to first order around the whole
    fit); ``weights`` below 1 are figures that the robust loss holds back; ``unpredicted`` were
    measured of runs in which we know no such figure (a TPOT of one token), and count nowhere.
    """

    calibration: Calibration
    parameters: tuple[ParameterLearnt, ...]
    figures: tuple[Figure, ...]
    errors_before: tuple[float, ...]
    errors_after: tuple[float, ...]
    errors_left_out: tuple[float, ...]
    weights: tuple[float, ...]
    unpredicted: tuple[Figure, ...] = ()


def calibration_at(theta: Sequence[float]) -> Calibration:
    """Parameters in units of their priors' spread -> the calibration."""
    scaled = {name: x * sd for (name, sd), x in zip(PRIORS, theta, strict=True)}
    return Calibration(
        compute=math.exp(scaled["compute"]),
        bandwidth=math.exp(scaled["bandwidth"]),
        collective_latency=math.exp(scaled["collective_latency"]),
        step_s=scaled["step_s"],
        sequence_s=scaled["sequence_s"],
    )


def figures_of(runs: Sequence[MeasuredRun]) -> tuple[Figure, ...]:
    """The figures that count, one a kind and run."""
    found = []
    for index, run in enumerate(runs):
        for name, columns, scale in FIGURES:
            column = next((c for c in columns if run.scored.get(c)), None)
            if column is not None:
                found.append(Figure(index, name, column, run.scored[column], scale))
    return tuple(found)


def fit(runs: Sequence[MeasuredRun]) -> Fit:
    """Fit the five numbers.

    Raises CapplanError where a run cannot be predicted, or there are too few figures.
    """
    import numpy as np

    problem = _Problem(runs)
    figures = problem.figures
    num_fitted = sum(figure.is_fitted for figure in figures)
    if num_fitted < _LEAST_FIGURES:
        raise CapplanError(
            f"{num_fitted} measured figures are too few to calibrate with",
            hint=f"{_LEAST_FIGURES} at least; ten runs at several loads identify most parameters",
        )
    theta = np.zeros(len(PRIORS))
    errors = before = problem.errors(theta)
    weights = np.ones(len(figures))
    jacobian = problem.jacobian(theta, errors)
    for _ in range(_STEPS):
        weights = _huber_weights(errors / problem.scales)
        step = _solve(jacobian, errors, theta, weights, problem.scales) - theta
        theta, errors, shrunk = problem.downhill(theta, errors, step)
        jacobian = problem.jacobian(theta, errors)
        if shrunk or float(np.max(np.abs(step))) < _CONVERGED:
            break
    weights = _huber_weights(errors / problem.scales)
    left_out = problem.left_out(theta, errors, jacobian, weights)
    spread = problem.spread(jacobian, weights)
    return Fit(
        calibration_at(_floats(theta)),
        tuple(_parameter(i, float(theta[i]), float(spread[i])) for i in range(len(PRIORS))),
        figures,
        tuple(map(float, before)),
        tuple(map(float, errors)),
        tuple(map(float, left_out)),
        tuple(map(float, weights)),
        problem.unpredicted,
    )


def _floats(theta: Vector) -> list[float]:
    return [float(x) for x in theta]


def _parameter(index: int, value: float, spread: float) -> ParameterLearnt:
    name, sd = PRIORS[index]
    z80 = 1.2816  # 80 % of a normal distribution lie within
    low, middle, high = ((value + k * z80 * spread) * sd for k in (-1, 0, 1))
    neutral = 0.0
    if not name.endswith("_s"):
        low, middle, high, neutral = math.exp(low), math.exp(middle), math.exp(high), 1.0
    # A value at its bound is no measurement, however sharp the data are there.
    at_bound = abs(value * sd) > 0.999 * _FARTHEST[name]
    identified = bool(spread < _IDENTIFIED and not at_bound)
    return ParameterLearnt(name, middle, low, high, identified, neutral)


class _Problem:
    """Predictions of the runs under a calibration, and their derivatives."""

    def __init__(self, runs: Sequence[MeasuredRun]) -> None:
        import numpy as np

        self.runs = [(settings_of(run), load_of(run)) for run in runs]
        self.names = [run.id for run in runs]
        self.uncalibrated = self._metrics(UNCALIBRATED)
        stated = figures_of(runs)
        self.figures = tuple(f for f in stated if f.column in self.uncalibrated[f.run])
        self.unpredicted = tuple(f for f in stated if f not in self.figures)
        self.logs = np.log([figure.measured for figure in self.figures])
        self.farthest = np.array([_FARTHEST[name] / sd for name, sd in PRIORS])
        self.scales = np.array([figure.scale for figure in self.figures])

    def _metrics(self, calibration: Calibration) -> list[dict[str, float]]:
        """Of every run, by column."""
        found = []
        for (settings, load), name in zip(self.runs, self.names, strict=True):
            try:
                found.append(emulate(settings, load, server_of(settings, calibration)).metrics)
            except CapplanError as error:
                raise CapplanError(f"run {name}: {error.message}", hint=error.hint) from None
        return found

    def errors(self, theta: Vector) -> Vector:
        """log(predicted / measured) of every figure."""
        import numpy as np

        predicted = self.uncalibrated
        if theta.any():
            predicted = self._metrics(calibration_at(_floats(theta)))
        values = [predicted[figure.run][figure.column] for figure in self.figures]
        return np.asarray(np.log(values) - self.logs)

    def jacobian(self, theta: Vector, errors: Vector) -> Vector:
        """d error / d theta, by differences wide enough to even out single scheduling steps."""
        import numpy as np

        columns = []
        for index in range(len(PRIORS)):
            moved = theta.copy()
            moved[index] += 0.25
            columns.append((self.errors(moved) - errors) / 0.25)
        return np.asarray(np.stack(columns, axis=1))

    def cost(self, theta: Vector, errors: Vector) -> float:
        import numpy as np

        z = np.abs(errors / self.scales)
        rho = np.where(z <= _HUBER, z**2, 2 * _HUBER * z - _HUBER**2)
        return float(rho.sum() + (theta**2).sum())

    def downhill(self, theta: Vector, errors: Vector, step: Vector) -> tuple[Vector, Vector, bool]:
        """The step, halved until it helps; the last value says that none did."""
        import numpy as np

        cost = self.cost(theta, errors)
        for factor in (1.0, 0.5, 0.25, 0.1):
            tried = np.clip(theta + factor * step, -self.farthest, self.farthest)
            found = self.errors(tried)
            if self.cost(tried, found) < cost:
                return tried, found, False
        return theta, errors, True

    def spread(self, jacobian: Vector, weights: Vector) -> Vector:
        """Posterior standard deviations, in units of the priors'."""
        import numpy as np

        covariance = np.linalg.inv(_normal(jacobian, weights, self.scales))
        return np.asarray(np.sqrt(np.diag(covariance)))

    def left_out(self, theta: Vector, errors: Vector, jacobian: Vector, weights: Vector) -> Vector:
        """Errors of each run under a fit to the others: one Newton step away from the whole."""
        import numpy as np

        found = errors.copy()
        for run in {figure.run for figure in self.figures}:
            mine = np.array([figure.run == run for figure in self.figures])
            others = np.where(mine, 0.0, weights)
            moved = _solve(jacobian, errors, theta, others, self.scales)
            found[mine] = errors[mine] + jacobian[mine] @ (moved - theta)
        return found


def _huber_weights(z: Vector) -> Vector:
    import numpy as np

    return np.asarray(np.minimum(1.0, _HUBER / np.maximum(np.abs(z), 1e-9)))


def _normal(jacobian: Vector, weights: Vector, scales: Vector) -> Vector:
    import numpy as np

    scaled = jacobian * (np.sqrt(weights) / scales)[:, None]
    return np.asarray(scaled.T @ scaled + np.eye(len(PRIORS)))


def _solve(
    jacobian: Vector, errors: Vector, theta: Vector, weights: Vector, scales: Vector
) -> Vector:
    """The minimum of the weighted squares, linearised at theta, with unit priors around zero."""
    import numpy as np

    target = jacobian @ theta - errors
    right = jacobian.T @ (weights / scales**2 * target)
    return np.asarray(np.linalg.solve(_normal(jacobian, weights, scales), right))
