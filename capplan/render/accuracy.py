"""The answer of `capplan accuracy` as a screen."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.screen import Column, Screen, Table
from capplan.results.accuracy import (
    AccuracyInputs,
    AccuracyResult,
    ErrorSummary,
    GroupErrors,
    Target,
    WorstRow,
)
from capplan.results.assumptions import Assumption


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if fraction < 9.995 else f"{100 * fraction:,.0f} %"


_ERRORS = (
    Column("num_measured", "cells", shows.count),
    Column("coverage_fraction", "predicted", _percent),
    Column("median_error_fraction", "median\nerror", _percent),
    Column("mean_error_fraction", "mean\nerror", _percent),
    Column("p90_error_fraction", "90th\npercentile", _percent),
    Column("bias_ratio", "bias", lambda value: f"{value:.2f}"),
)


def screen(
    result: AccuracyResult, inputs: AccuracyInputs, assumptions: Sequence[Assumption]
) -> Screen:
    tables = [_targets(result.targets), _metrics(result.metrics)]
    tables += _groups(result.groups, inputs.by)
    if result.worst:
        tables.append(_worst(result.worst))
        tables.append(_parts(result.worst))
    if result.unpredicted:
        tables.append(_unpredicted(result))
    return Screen(
        headline=_headline(result, inputs),
        tables=tables,
        notes=["Error: |predicted - measured| / measured. Bias: median of predicted / measured."],
        assumptions=assumptions,
        next_commands=_next(inputs),
    )


def _headline(result: AccuracyResult, inputs: AccuracyInputs) -> str:
    share = result.num_predicted / result.num_rows
    rows = f"{result.num_predicted:,} of {shows.plural(result.num_rows, 'measured run')}"
    chosen = ", ".join(f"{name}={value}" for name, value in inputs.where.items())
    return f"{rows} predicted ({share:.1%}){f'; {chosen}' if chosen else ''}"


def _cells(errors: ErrorSummary) -> list[object]:
    return [getattr(errors, column.key) for column in _ERRORS]


def _targets(targets: Sequence[Target]) -> Table:
    errors = [column for column in _ERRORS if column.key != "mean_error_fraction"]
    columns = (
        Column("met", "", lambda met: "✓" if met else "✗", right=False),
        Column("name", "", right=False),
        *errors,
        Column("most_median_fraction", "target\nmedian", _percent),
        Column("most_p90_fraction", "target\n90th", _percent),
    )
    rows = [
        (
            target.met,
            target.errors.name,
            *(getattr(target.errors, column.key) for column in errors),
            target.most_median_fraction,
            target.most_p90_fraction,
        )
        for target in targets
    ]
    used = "; ".join(f"{t.errors.name}: {', '.join(t.workloads)}" for t in targets)
    return Table("Against the targets", columns, rows, note=f"Over {used}.")


def _metrics(errors: Sequence[ErrorSummary]) -> Table:
    columns = (Column("metric", "", right=False), *_ERRORS)
    return Table("By metric", columns, [(error.name, *_cells(error)) for error in errors])


def _groups(groups: Sequence[GroupErrors], by: Sequence[str]) -> list[Table]:
    """One table a figure: rows are the groups."""
    columns = (*(Column(name, name, right=False) for name in by), *_ERRORS)
    names = dict.fromkeys(error.name for group in groups for error in group.errors)
    tables = []
    for name in names:
        rows = [
            (*(value or "-" for value in group.values), *_cells(error))
            for group in groups
            for error in group.errors
            if error.name == name
        ]
        tables.append(Table(f"{name} by {', '.join(by)}", columns, rows))
    return tables


def _worst(worst: Sequence[WorstRow]) -> Table:
    columns = (
        Column("id", "row", right=False),
        Column("metric", "metric", right=False),
        Column("measured", "measured", shows.number),
        Column("predicted", "predicted", shows.number),
        Column("error_fraction", "error", _percent),
        Column("what", "", right=False, prose=True),
    )
    rows = [[getattr(row, column.key) for column in columns] for row in worst]
    return Table("The worst rows", columns, rows)


def _parts(worst: Sequence[WorstRow]) -> Table:
    """Parts of each row's metric, largest first: of the mean TTFT, the mean TPOT, or the run."""
    columns = (
        Column("id", "row", right=False),
        Column("of", "of", right=False),
        Column("parts", "", right=False, prose=True),
    )
    rows = [(row.id, _OF[_kind(row)], _sentence(row)) for row in worst]
    return Table("What their predictions are made of", columns, rows, in_tsv=False)


_OF = {"ttft": "mean TTFT", "tpot": "mean TPOT", "run": "the run"}


def _kind(row: WorstRow) -> str:
    return next((kind for kind in ("ttft", "tpot") if row.metric.startswith(kind)), "run")


def _sentence(row: WorstRow) -> str:
    sizes = [(getattr(part, f"{_kind(row)}_s"), part.name) for part in row.parts]
    shown = sorted(((size, name) for size, name in sizes if size), reverse=True)
    return ", ".join(f"{name} {shows.duration(size)}" for size, name in shown)


def _unpredicted(result: AccuracyResult) -> Table:
    columns = (
        Column("num_rows", "rows", shows.count),
        Column("reason", "why not", right=False, prose=True),
        Column("example", "such as", right=False),
    )
    rows = [(entry.num_rows, entry.reason, entry.example) for entry in result.unpredicted]
    return Table("Not predicted", columns, rows)


def _next(inputs: AccuracyInputs) -> list[str]:
    if inputs.by:
        return [f"capplan accuracy {inputs.measured} --predictions predictions.csv"]
    return [f"capplan accuracy {inputs.measured} --by gpu,engine"]
