"""The tables of docs/accuracy.md from measured rows.

usage: python benchmarks/accuracy_tables.py MEASURED.csv [--left-out STEM] [--write]

Predicts every row of the core and prints coverage and errors as markdown: against the targets and
by GPU, engine, TP, dense or experts, weight format, workload. `--left-out` adds the errors of rows
that the fit did not see (STEM-generation.csv and STEM-model.csv of fit_performance.py). `--write`
puts all of it between the marks of docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from error_bands import put_into_page, read_predictions

from capplan.accuracy.engines import engine_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.predict import Prediction, predict_all
from capplan.accuracy.report import cell
from capplan.accuracy.score import Pair, grouped, pairs_of, targets, unpredicted
from capplan.accuracy.settings import settings_of
from capplan.errors import CapplanError
from capplan.results.accuracy import ErrorSummary

HEAD = "| {} | rows | median | mean | 90th | bias |\n| --- | --- | --- | --- | --- | --- |"


def percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def line(name: str, errors: ErrorSummary) -> str:
    bias = "-" if errors.bias_ratio is None else f"{errors.bias_ratio:.2f}"
    cells = (
        name,
        str(errors.num_compared),
        percent(errors.median_error_fraction),
        percent(errors.mean_error_fraction),
        percent(errors.p90_error_fraction),
        bias,
    )
    return f"| {' | '.join(cells)} |"


def parallelism(run: MeasuredRun) -> str:
    try:
        settings = settings_of(run)
    except CapplanError:
        return ""
    stages = f", PP {settings.pp}" if settings.pp > 1 else ""
    return f"attention DP {settings.dp}" if settings.dp > 1 else f"TP {settings.tp}{stages}"


def engine_family(run: MeasuredRun) -> str:
    try:
        return engine_of(run).scheduler
    except CapplanError:
        return ""


Key = Callable[[MeasuredRun], str]
BREAKDOWNS: tuple[tuple[str, Key], ...] = (
    ("workload", lambda run: run.workload),
    ("GPU", lambda run: run.gpu),
    ("engine", engine_family),
    ("parallelism", parallelism),
    ("feed-forward", lambda run: cell(run, "ffn")),
    ("weights", lambda run: run.weight_dtype or "-"),
    ("source", lambda run: run.columns.get("source_group", "")),
)


def headline(rows: Sequence[Sequence[Pair]]) -> Iterable[str]:
    yield HEAD.format("all core rows")
    for target in targets(rows):
        over = ", ".join(target.workloads)
        yield line(f"{target.errors.name} ({over})", target.errors)


def breakdowns(rows: Sequence[Sequence[Pair]]) -> Iterable[str]:
    for title, key in BREAKDOWNS:
        groups = grouped(rows, lambda run, key=key: (key(run),))  # type: ignore[misc]
        for figure in ("TPOT", "throughput", "TTFT"):
            found = [
                (group.values[0], errors)
                for group in groups
                for errors in group.errors
                if errors.name == figure
            ]
            if title == "workload" or title == "source" or figure != "TTFT":
                yield f"\n{HEAD.format(f'{figure} by {title}')}"
                yield from (line(name, errors) for name, errors in found)


def left_out(runs: Sequence[MeasuredRun], stem: Path) -> Iterable[str]:
    """Against the targets with the row's own source and generation, or model, out of the fit."""
    for kind in ("generation", "model"):
        known = read_predictions(stem.with_name(f"{stem.name}-{kind}.csv"))
        rows = [pairs_of(run, Prediction(run.id, known.get(run.id, {}), None, ())) for run in runs]
        yield f"\n{HEAD.format(f'its source x {kind} left out')}"
        for name, some in (("", rows), *_parts(rows)):
            for target in targets(some):
                if target.errors.num_compared:
                    yield line(f"{target.errors.name}{name}", target.errors)


def _parts(rows: Sequence[Sequence[Pair]]) -> Iterable[tuple[str, Sequence[Sequence[Pair]]]]:
    for ffn in ("dense", "experts"):
        yield f", {ffn}", [row for row in rows if row and cell(row[0].run, "ffn") == ffn]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--left-out", type=Path, metavar="STEM")
    parser.add_argument("--write", action="store_true", help="into docs/accuracy.md")
    arguments = parser.parse_args()
    runs = [run for run in read_measured(arguments.measured) if run.columns.get("core") == "1"]
    start = time.perf_counter()
    predictions = predict_all(runs)
    spent = time.perf_counter() - start
    rows = [pairs_of(run, found) for run, found in zip(runs, predictions, strict=True)]
    done = sum(found.reason is None for found in predictions)
    text = [
        f"{done:,} of {len(runs):,} rows predicted ({done / len(runs):.1%}), "
        f"{1e3 * spent / len(runs):.0f} ms a row on this machine.\n",
        *headline(rows),
        *(left_out(runs, arguments.left_out) if arguments.left_out else ()),
        *breakdowns(rows),
    ]
    text += [
        f"\n{e.num_rows} rows: {e.reason} ({e.example})" for e in unpredicted(runs, predictions)
    ]
    shown = "\n".join(text)
    print(shown)
    if arguments.write:
        put_into_page("tables", shown)


if __name__ == "__main__":
    main()
