"""The answer of `capplan calibrate` as a screen."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.calibration import (
    CalibrateInputs,
    CalibrationResult,
    FigureErrors,
    OwnErrorRange,
    ParameterLearnt,
)

_MEANING = {
    "compute": "compute reached, x the model's",
    "bandwidth": "memory bandwidth reached, x the model's",
    "collective_latency": "latency of collectives, x the model's",
    "step_s": "time a step, beside the model's",
    "sequence_s": "time a running sequence and step, beside the model's",
}
_FIGURES = {"tpot": "TPOT", "ttft": "TTFT", "ttft_p99": "TTFT P99", "throughput": "throughput"}
_MOST_REMARKS = 12


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def screen(
    result: CalibrationResult, inputs: CalibrateInputs, assumptions: Sequence[Assumption]
) -> Screen:
    tables = [_errors(result), _parameters(result.parameters)]
    if result.bands:
        tables.append(_bands(result.bands))
    if result.remarks:
        tables.append(_remarks("Set aside or held back", result.remarks[:_MOST_REMARKS]))
    if result.skipped:
        tables.append(_remarks("Not used", result.skipped[:_MOST_REMARKS]))
    return Screen(
        headline=_headline(result),
        tables=tables,
        notes=[*_notes(result)],
        assumptions=assumptions,
        next_commands=_next(result, inputs),
    )


def _headline(result: CalibrationResult) -> str:
    runs = shows.plural(result.num_runs, "run")
    total = result.total
    before, after = _percent(total.before_fraction), _percent(total.left_out_fraction)
    verdict = "helps" if result.helps else "does not help"
    return (
        f"Calibration {verdict}: median error {before} -> {after} on left-out runs; {runs} of "
        f"{result.hardware} under {result.engine}"
    )


def _errors(result: CalibrationResult) -> Table:
    columns = (
        Column("name", "figure", right=False),
        Column("num_figures", "measured", shows.count),
        Column("before_fraction", "before", _percent),
        Column("after_fraction", "after,\nin sample", _percent),
        Column("left_out_fraction", "after,\nleft out", _percent),
    )
    rows: list[FigureErrors] = [*result.errors, result.total]
    watched = ", ".join(row.name for row in rows if not row.is_fitted)
    return Table(
        "Median error of predictions",
        columns,
        [[getattr(row, column.key) for column in columns] for row in rows],
        note="Left out: each run predicted by a fit to the others."
        + (f" {watched} is not fitted, and not in `all`." if watched else ""),
    )


def _bands(ranges: Sequence[OwnErrorRange]) -> Table:
    columns = (
        Column("figure", "figure", lambda key: _FIGURES[key], right=False),
        Column("loaded", "load", lambda full: "from 85 %" if full else "below 85 %", right=False),
        Column("num_runs", "runs", shows.count),
        Column("low_ratio", "from", _plain),
        Column("high_ratio", "to", _plain),
    )
    return Table(
        "Measured / predicted of left-out runs",
        columns,
        [[getattr(row, column.key) for column in columns] for row in ranges],
        note="With --calibration the error bands of every command are drawn towards these.",
    )


def _parameters(parameters: Sequence[ParameterLearnt]) -> Table:
    columns = (
        Column("name", "parameter", right=False),
        Column("value", "value", _plain),
        Column("low", "80 %\nfrom", _plain),
        Column("high", "\nto", _plain),
        Column("identified", "set by", lambda found: "data" if found else "prior", right=False),
        Column("meaning", "", right=False, prose=True),
    )
    rows = [
        (p.name, *(_value(p.name, x) for x in (p.value, p.low, p.high)), p.identified,
         _MEANING[p.name])
        for p in parameters
    ]  # fmt: skip
    return Table("What was learnt", columns, rows)


def _value(name: str, value: float) -> object:
    return _Time(value) if name.endswith("_s") else value


class _Time(float):
    """Seconds, told from factors where a column holds both."""


def _plain(value: float) -> str:
    if isinstance(value, _Time):
        sign = "-" if value < 0 else ""
        return sign + shows.duration(abs(value)) if value else "0"
    return f"{value:.3f}"


def _remarks(title: str, remarks: Sequence[object]) -> Table:
    columns = (
        Column("run", "run", right=False, prose=True),
        Column("remark", "", right=False, prose=True),
    )
    rows = [[getattr(remark, column.key) for column in columns] for remark in remarks]
    return Table(title, columns, rows)


def _notes(result: CalibrationResult) -> list[str]:
    hidden = max(0, len(result.remarks) - _MOST_REMARKS) + max(
        0, len(result.skipped) - _MOST_REMARKS
    )
    notes = []
    if hidden:
        notes.append(f"{hidden} more remarks: --json has all.")
    free = [p.name for p in result.parameters if not p.identified]
    if free:
        notes.append(
            f"Not set by these runs: {', '.join(free)}; they stay near the model's. Runs at other "
            "loads, lengths or TP would set them."
        )
    return notes


def _next(result: CalibrationResult, inputs: CalibrateInputs) -> list[str]:
    if result.written is not None:
        return [f"capplan gpus --hardware {result.hardware} --calibration {result.written}"]
    if result.helps and inputs.output is None:
        files = " ".join(inputs.results[:2]) + (" ..." if len(inputs.results) > 2 else "")
        return [f"capplan calibrate {files} --output calibration.yaml"]
    return []
