"""A fit as the answer of `capplan calibrate`, and as the file that other commands take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from capplan.accuracy.calibrate import FIGURES, Fit, fit
from capplan.accuracy.calibration_runs import CalibrationRuns
from capplan.accuracy.own_errors import own_errors
from capplan.accuracy.settings import RunSettings, settings_of
from capplan.errors import CapplanError
from capplan.results.calibration import (
    CalibrationResult,
    FigureErrors,
    ParameterLearnt,
    RunRemark,
)
from capplan.specs.calibration import CalibrationSpec

# The robust loss trusts a figure less than this: its run is named.
_HELD_BACK = 0.5


def calibrate(gathered: CalibrationRuns) -> tuple[CalibrationResult, CalibrationSpec]:
    """Fit, judge and describe.

    Raises CapplanError where the runs are of several kinds of server, or cannot be predicted.
    """
    _one_kind([settings_of(run) for run in gathered.runs])
    return described(gathered, fit(gathered.runs))


def described(gathered: CalibrationRuns, found: Fit) -> tuple[CalibrationResult, CalibrationSpec]:
    """What a fit learnt, and how well it does on runs that it has not seen."""
    servers = [settings_of(run) for run in gathered.runs]
    errors = [row for name, _, _ in FIGURES if (row := _errors(found, name)) is not None]
    total = _errors(found, None)
    assert total is not None
    result = CalibrationResult(
        helps=total.left_out_fraction < total.before_fraction,
        hardware=servers[0].hardware_id,
        engine=servers[0].engine.kind,
        models=tuple(dict.fromkeys(server.model_id for server in servers)),
        tp=tuple(sorted({server.tp for server in servers})),
        num_runs=len(gathered.runs),
        parameters=found.parameters,
        errors=tuple(errors),
        total=total,
        remarks=tuple(_remarks(gathered, found)),
        skipped=tuple(RunRemark(name, why) for name, why in gathered.skipped),
        written=None,
        bands=own_errors(gathered.runs, found),
    )
    return result, _spec(result)


def _one_kind(servers: Sequence[RunSettings]) -> None:
    for what, values in (
        ("accelerators", {server.hardware_id for server in servers}),
        ("engines", {server.engine.kind for server in servers}),
    ):
        if len(values) > 1:
            raise CapplanError(
                f"the results are of {len(values)} {what}: {', '.join(sorted(values))}",
                hint="calibrate each for itself: give its files only",
            )


def _errors(found: Fit, name: str | None) -> FigureErrors | None:
    chosen = [
        i
        for i, figure in enumerate(found.figures)
        if (figure.is_fitted if name is None else figure.name == name)
    ]
    if not chosen:
        return None

    def middle(errors: Sequence[float]) -> float:
        return median(abs(math.exp(errors[i]) - 1) for i in chosen)

    return FigureErrors(
        name or "all",
        found.figures[chosen[0]].is_fitted,
        len(chosen),
        middle(found.errors_before),
        middle(found.errors_after),
        middle(found.errors_left_out),
    )


def _remarks(gathered: CalibrationRuns, found: Fit) -> list[RunRemark]:
    remarks = [RunRemark(run, note) for run, note in gathered.notes]
    remarks += [
        RunRemark(gathered.runs[figure.run].id, f"{figure.column}: nothing like it is predicted")
        for figure in found.unpredicted
    ]
    for figure, weight, error in zip(found.figures, found.weights, found.errors_after, strict=True):
        if weight < _HELD_BACK:
            off = math.exp(error)
            remarks.append(
                RunRemark(
                    gathered.runs[figure.run].id,
                    f"{figure.column}: predicted {off:.2f} x measured; held back as an outlier",
                )
            )
    return remarks


def _spec(result: CalibrationResult) -> CalibrationSpec:
    def figures(parameter: ParameterLearnt) -> dict[str, float | bool]:
        scale = 1e6 if parameter.name.endswith("_s") else 1.0
        value, low, high = (
            round(x * scale, 4) for x in (parameter.value, parameter.low, parameter.high)
        )
        return {"value": value, "low": low, "high": high, "identified": parameter.identified}

    fields = {p.name.removesuffix("_s") + ("_us" if p.name.endswith("_s") else ""): figures(p)
              for p in result.parameters}  # fmt: skip
    total = result.total
    return CalibrationSpec.model_validate(
        {
            "schema": "capplan.calibration/1",
            "hardware": result.hardware,
            "engine": result.engine,
            "models": result.models,
            "tp": result.tp,
            "runs": result.num_runs,
            **fields,
            "errors": {
                "before": round(total.before_fraction, 4),
                "after": round(total.after_fraction, 4),
                "left_out": round(total.left_out_fraction, 4),
            },
            "bands": [
                {
                    "figure": own.figure,
                    "loaded": own.loaded,
                    "runs": own.num_runs,
                    "low": round(own.low_ratio, 4),
                    "high": round(own.high_ratio, 4),
                }
                for own in result.bands
            ],
        }
    )
