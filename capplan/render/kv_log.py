"""A start-up log beside the prediction."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.screen import Column, Show, Table
from capplan.results.engine_log import LogComparison, LogTerm


def log_tables(log: LogComparison) -> list[Table]:
    """Each figure predicted and logged; and the lines that could not be read."""
    engine = f" ({log.engine}{f' {log.version}' if log.version else ''})" if log.engine else ""
    sizes = [term for term in log.terms if term.unit == "bytes"]
    others = [term for term in log.terms if term.unit != "bytes"]
    tables = []
    if sizes:
        title = f"Predicted beside logged{engine}: memory of one GPU"
        tables.append(_table(title, "_bytes", sizes, _size))
    if others:
        tables.append(_table(f"Predicted beside logged{engine}", "", others, _number))
    if log.unread:
        line = (Column("line", "", right=False, prose=True),)
        tables.append(Table("Not read: cut lines", line, [(text,) for text in log.unread]))
    return tables


def _table(title: str, unit: str, terms: Sequence[LogTerm], show: Show) -> Table:
    columns = (
        Column("name", "", right=False),
        Column(f"low{unit}", "least", show),
        Column(f"predicted{unit}", "predicted", show),
        Column(f"high{unit}", "most", show),
        Column(f"logged{unit}", "logged", show),
        Column(f"difference{unit}", "difference", lambda v: f"+{show(v)}" if v > 0 else show(v)),
        Column("difference_fraction", "", lambda v: f"{v:+.1%}"),
    )
    rows = [
        (
            term.name,
            term.low if term.low < term.high else None,
            term.predicted,
            term.high if term.low < term.high else None,
            term.logged,
            term.difference,
            term.difference / term.logged if term.logged else None,
        )
        for term in terms
    ]
    return Table(title, columns, rows)


def log_notes(log: LogComparison) -> list[str]:
    notes = []
    if log.longest_admitted_tokens is not None:
        notes.append(
            "By the log the engine did not start: the longest request that it admits is "
            f"`--max-model-len {log.longest_admitted_tokens}`."
        )
    if log.differs_most:
        term = next(term for term in log.terms if term.name == log.differs_most)
        side = "more" if term.difference >= 0 else "less"
        size = shows.binary_bytes(abs(term.difference))
        inside = "inside" if term.low <= term.logged <= term.high else "outside"
        where = f", {inside} its range" if term.low < term.high else ""
        notes.append(
            f"The term that differs most is {term.name}: predicted {size} {side} than logged"
            f"{where}."
        )
    if log.num_runs > 1:
        notes.append(f"The log holds {log.num_runs} runs; the last was read.")
    if log.differing_ranks:
        names = ", ".join(name.replace("_", " ") for name in log.differing_ranks)
        notes.append(f"Ranks print different figures of: {names}. The rank with least room counts.")
    return notes


def _size(value: float) -> str:
    size = shows.binary_bytes(abs(value))
    return f"-{size}" if value < 0 else size


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
