"""A report as a page: headline, risk, what to run; then everything behind it, folded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capplan.render import shows
from capplan.render import simulate as simulated
from capplan.render.bands import one_each_table
from capplan.render.gpus import NOT_MEASURED, SIMULATED, headline, inside_notes
from capplan.render.gpus_tables import (
    bounds_table,
    comparison_tables,
    means_table,
    suggestion_tables,
    tp_table,
)
from capplan.render.money import money_and_power
from capplan.render.report.asked import question_table
from capplan.render.report.page import (
    Block,
    Code,
    Formulas,
    Page,
    Picture,
    Points,
    Section,
    Sheet,
    Words,
)
from capplan.render.report.top import spares, top_of
from capplan.render.screen import Column, Table, assumption_table
from capplan.render.sizing import (
    kinds_tables,
    levels_table,
    proof_parts,
    trade_table,
)
from capplan.render.sizing_moves import months_table, robustness_table
from capplan.results.gpus import GpusResult
from capplan.results.report import Report, ReportText

MOST_KINDS = 64
Pictures = Mapping[str, Picture]


def page_of(report: Report, pictures: Pictures) -> Page:
    """``pictures`` by name; those that are missing are left out."""
    result, asked = report.answer, report.question
    first, *rest = headline(result, asked).split("\n")
    sections = [
        _answer(report),
        _risks(report, pictures),
        *([_run(report)] if report.launches else []),
        _why(report, pictures),
        *_simulated(report, pictures),
        _assumed(report),
        _runners_up(report),
        _formulas(report),
        _reproduce(report),
    ]
    return Page(
        title=f"{asked.model_name}: {first}",
        kicker=f"How many GPUs for {asked.model_name}",
        headline=first,
        lead=rest,
        top=top_of(result),
        sections=[section for section in sections if section.blocks],
        footer=f"capplan {report.version}. The same question gives the same page, byte for byte.",
    )


def _answer(report: Report) -> Section:
    result = report.answer
    tables = []
    if result.service_levels:
        means = result.sizing is None
        tables.append(means_table(result.service_levels) if means else levels_table(result))
    tables += [] if result.feasible else suggestion_tables(result)
    tables.append(question_table(report))
    if result.feasible:
        tables.append(_settings(result))
    if result.cost is not None or result.power is not None:
        tables.append(money_and_power(result.cost, result.power))
    return Section("answer", "Answer and question", [Sheet(table) for table in tables])


def _settings(result: GpusResult) -> Table:
    served = result.served_as
    rows = [
        ("accelerator", result.hardware),
        ("replicas", f"{result.num_replicas}, and {spares(result)}"),
        ("tensor parallel (TP)", str(result.tp)),
    ]
    if served is not None:
        rows += [("pipeline stages (PP)", str(served.pp))] if served.pp > 1 else []
        rows += [("attention copies (DP)", str(served.dp))] if served.dp > 1 else []
        rows += [("expert parallel (EP)", str(served.ep))] if served.ep > 1 else []
        rows += [
            ("engine", served.engine),
            ("weights", served.dtype),
            ("KV cache", served.kv_dtype),
            ("max_num_seqs", f"{served.max_num_seqs:,}"),
            ("max_num_batched_tokens", f"{served.max_num_batched_tokens:,}"),
            ("gpu_memory_utilization", f"{served.gpu_memory_utilization:.4g}"),
            ("enable_prefix_caching", "on" if served.enable_prefix_caching else "off"),
        ]
    columns = (Column("what", "setting", right=False), Column("value", "value", right=False))
    return Table("Shape and settings", columns, rows, in_tsv=False)


def _risks(report: Report, pictures: Pictures) -> Section:
    result, sizing = report.answer, report.answer.sizing
    blocks: list[Block] = []
    unmeasured = [a for a in report.assumptions if a.what.startswith("not measured")]
    if unmeasured:
        texts = [f"? {a.what[:1].upper()}{a.what[1:]}: {a.value}." for a in unmeasured]
        blocks.append(Words(texts, "open"))
    points = proof_parts(result, report.question.arrival_rate_per_s)
    points += [("Limit within the band", note) for note in inside_notes(result)]
    if points:
        blocks.append(Points(points))
    blocks += _drawn(pictures, "traffic", "tornado")
    if result.bands:
        blocks.append(Sheet(one_each_table(result.bands)))
    if sizing is not None and sizing.variations:
        blocks.append(Sheet(robustness_table(result)))
    if sizing is not None and sizing.months:
        blocks.append(Sheet(months_table(sizing)))
    return Section("risk", "What could make it wrong", blocks)


def _drawn(pictures: Pictures, *names: str) -> list[Block]:
    return [pictures[name] for name in names if name in pictures]


def _run(report: Report) -> Section:
    """The command at once; files are long."""
    first, *rest = report.launches
    blocks = [_code(first, folded=False), *(_code(text, folded=True) for text in rest)]
    return Section("run", "What to run", blocks)


def _code(text: ReportText, *, folded: bool) -> Code:
    language = "yaml" if "yaml" in text.name.lower() else "sh"
    return Code(text.name, text.text, language, folded)


def _why(report: Report, pictures: Pictures) -> Section:
    result = report.answer
    blocks = _drawn(pictures, "roofline")
    if result.bounds is not None:
        blocks.append(Sheet(bounds_table(result, report.question)))
    blocks.append(Words([NOT_MEASURED if result.sizing is None else SIMULATED]))
    return Section("why", "Why so many", blocks)


def _simulated(report: Report, pictures: Pictures) -> list[Section]:
    run = report.run
    if run is None:
        return []
    screen = simulated.screen(run.result, run.inputs, ())
    blocks: list[Block] = [
        Words([*screen.headline.split("\n")]),
        *_drawn(pictures, "latencies", "load"),
        *(Sheet(table) for table in screen.tables),
        Words(screen.notes),
    ]
    summary = "the fleet once more, by capplan simulate: latencies, queue, KV and each replica"
    return [Section("simulated", "What its requests would see", blocks, True, summary)]


def _assumed(report: Report) -> Section:
    table = assumption_table(report.assumptions)
    what, value, option = table.columns
    columns = (
        replace(what, heading="what"), replace(value, heading="taken"),
        replace(option, heading="changed with"),
    )  # fmt: skip
    count = shows.plural(len(report.assumptions), "thing")
    return Section(
        "assumed", "Assumptions", [Sheet(replace(table, columns=columns))], True,
        f"{count} that nobody said, and the option that changes each",
    )  # fmt: skip


def _runners_up(report: Report) -> Section:
    result, sizing = report.answer, report.answer.sizing
    several = len(result.candidates) > 1
    blocks: list[Block] = []
    if several:
        blocks += [Sheet(table) for table in comparison_tables(result)]
    if sizing is not None and sizing.kinds:
        tables = kinds_tables(sizing, several, most=MOST_KINDS)
        blocks += [Sheet(table) for table in tables]
    if sizing is not None and len(sizing.trade_offs) > 1:
        blocks.append(Sheet(trade_table(sizing, several)))
    if sizing is None and len(result.tp_options) > 1:
        blocks.append(Sheet(tp_table(result)))
    summary = "what else was looked at, and why it was left"
    return Section("others", "Runners-up", blocks, True, summary)


def _formulas(report: Report) -> Section:
    found = report.explanation
    blocks: list[Block] = [Formulas(found.figures)]
    if found.left_out:
        blocks.append(Words([f"Not by one formula: {note}." for note in found.left_out]))
    count = shows.plural(len(found.figures), "figure")
    summary = f"{count}, each with why, formula, numbers, a check and its source"
    return Section("formulas", "Every formula with its numbers", blocks, True, summary)


def _reproduce(report: Report) -> Section:
    lines = [f"# {one.purpose}\n{one.line}" for one in report.commands]
    blocks: list[Block] = [Code("Commands", "\n\n".join(lines))]
    if report.left_out:
        blocks.append(Words([f"Left out of this report: {note}." for note in report.left_out]))
    return Section("again", "Ask again", blocks, True, "the commands that give each part")
