"""The tables of docs/accuracy.md from measured rows.

usage: python benchmarks/accuracy_tables.py MEASURED.csv [--write]

Predicts every row of the core and prints coverage and errors as markdown: against the targets and
by GPU, engine, TP, dense or experts, weight format, workload. `--write` puts them between the
marks of docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from capplan.accuracy.engines import engine_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.predict import predict_all
from capplan.accuracy.report import cell
from capplan.accuracy.score import Pair, grouped, pairs_of, targets, unpredicted
from capplan.accuracy.settings import settings_of
from capplan.errors import CapplanError
from capplan.results.accuracy import ErrorSummary

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
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


def tables(rows: Sequence[Sequence[Pair]]) -> Iterable[str]:
    yield HEAD.format("all core rows")
    for target in targets(rows):
        over = ", ".join(target.workloads)
        yield line(f"{target.errors.name} ({over})", target.errors)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
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
        *tables(rows),
    ]
    text += [
        f"\n{e.num_rows} rows: {e.reason} ({e.example})" for e in unpredicted(runs, predictions)
    ]
    shown = "\n".join(text)
    print(shown)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        marks = r"(<!-- tables -->\n).*?(<!-- end of tables -->)"
        page = re.sub(marks, lambda m: f"{m[1]}{shown}\n{m[2]}", page, flags=re.S)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
