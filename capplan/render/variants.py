"""A plan and its variants side by side, as a screen."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from capplan.render import shows
from capplan.render.band_columns import value_key, with_ends
from capplan.render.band_shares import shares_note
from capplan.render.bands import THROUGHPUT, bands_line
from capplan.render.screen import Column, Screen, Table
from capplan.render.simulate import MODELLED, deployment
from capplan.results.assumptions import Assumption
from capplan.results.bands import BandedFigure
from capplan.results.simulate import SimulateInputs
from capplan.results.variants import Effect, Figure, VariantResult, VariantsResult

_VERDICTS = {
    "meets": "✓ met",
    "misses": "✗ missed",
    "saturated": "✗ saturated",
    "undecided": "? too few",
    "interrupted": "? stopped",
    "no-requests": "? no request",
}

_SHOWS: dict[str, Callable[[float], str]] = {
    "duration": shows.duration,
    "share": shows.share,
    "ratio": shows.number,
    "rate": shows.rate,
    "count": lambda count: f"{round(count):,}",
}


def screen(
    result: VariantsResult, inputs: SimulateInputs, assumptions: Sequence[Assumption], width: int
) -> Screen:
    """`width`: of the terminal; what does not fit beside the plan goes into a further table."""
    return Screen(
        headline=_headline(result, inputs),
        tables=[_changes(result), *_side_by_side(result, width)],
        notes=[*_effects(result), *_sure(result), MODELLED],
        assumptions=assumptions,
        next_commands=[f'capplan simulate --plan {inputs.plan} --variant "{_example(result)}"'],
        tsv=_for_programs(result),
    )


def _sure(result: VariantsResult) -> list[str]:
    """Bands of the plan as it is; those of its variants are in the JSON."""
    base = result.variants[0].result
    statistics = [
        band.statistic
        for band in base.bands
        if band.figure == "ttft" and re.fullmatch(r"P[\d.]+", band.statistic)
    ]
    last = statistics[-1] if statistics else "mean"
    shown = [
        band
        for band in base.bands
        if band.figure == THROUGHPUT or (band.figure in ("ttft", "tpot") and band.statistic == last)
    ]
    return [f"How sure, of {result.variants[0].name}: {bands_line(shown)}"] if shown else []


def _example(result: VariantsResult) -> str:
    return result.variants[min(1, len(result.variants) - 1)].name


def _headline(result: VariantsResult, inputs: SimulateInputs) -> str:
    base = result.variants[0].result
    met = [v.name for v in result.variants if v.result.feasible]
    verdict = (
        f"every limit holds with: {', '.join(met)}." if met else "no variant meets every limit."
    )
    return (
        f"{inputs.model_name} on {deployment(inputs)}, {inputs.traffic}: "
        f"the plan and {shows.plural(len(result.variants) - 1, 'variant')}; {verdict}\n"
        f"{base.num_requests:,} requests each, the same for all, seed {inputs.seed}."
    )


def _changes(result: VariantsResult) -> Table:
    columns = (
        Column("variant", "", right=False),
        Column("changes", "what is different", right=False, prose=True),
    )
    rows = []
    for variant in result.variants[1:]:
        changes = [
            f"{change.field} {change.after}" if change.after is not None else f"no {change.field}"
            for change in variant.changes
        ]
        note = [variant.note] if variant.note else []
        rows.append((variant.name, "; ".join([*changes, *note])))
    return Table("Variants", columns, rows, in_tsv=False)


GAP = 2  # between columns


def _side_by_side(result: VariantsResult, width: int) -> list[Table]:
    """Variants as columns; the plan as it is stands first in every table."""
    names = ["limits", *(figure.name for figure in result.figures)]
    cells = [
        [
            _VERDICTS[variant.result.verdict],
            *(_shown(figure, figure.values[index]) for figure in result.figures),
        ]
        for index, variant in enumerate(result.variants)
    ]
    headings = [_two_lines(variant.name) for variant in result.variants]
    widths = [
        GAP + max(len(text or "-") for text in [*heading.split("\n"), *column])
        for heading, column in zip(headings, cells, strict=True)
    ]
    room = width - max(map(len, names)) - widths[0]
    tables: list[Table] = []
    for group in _groups(widths[1:], room):
        shown = [0, *(1 + index for index in group)]
        columns = [Column("figure", "", right=False)]
        columns += [Column(f"v{index}", headings[index]) for index in shown]
        rows = [[name, *(cells[i][row] for i in shown)] for row, name in enumerate(names)]
        title = "Side by side" if not tables else "Side by side, continued"
        tables.append(Table(title, columns, rows, in_tsv=False))
    if tables:
        rows_of = [(variant.name, _banded(variant, result)) for variant in result.variants]
        tables[-1] = replace(tables[-1], note=shares_note(rows_of))
    return tables


def _banded(variant: VariantResult, result: VariantsResult) -> list[BandedFigure]:
    """Bands of what the table shows."""
    keys = {figure.key for figure in result.figures} - {"goodput_per_s"}
    return [band for band in variant.result.bands if value_key(band) in keys]


def _groups(widths: Sequence[int], room: int) -> list[list[int]]:
    """Neighbours that fit into a table together; at least one a table."""
    groups: list[list[int]] = [[]]
    left = room
    for index, width in enumerate(widths):
        if groups[-1] and width > left:
            groups.append([])
            left = room
        groups[-1].append(index)
        left -= width
    return groups


def _two_lines(name: str) -> str:
    """A heading no wider than it has to be."""
    words = name.split(" ")
    cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
    if not cuts:
        return name
    return "\n".join(min(cuts, key=lambda lines: max(map(len, lines))))


def _shown(figure: Figure, value: float | None) -> str | None:
    if value is None:
        return None
    return _SHOWS[figure.kind](value)


def _effects(result: VariantsResult) -> list[str]:
    by_key = {figure.key: figure for figure in result.figures}

    def named(effect: Effect) -> str:
        figure = by_key[effect.key]
        return f"{figure.name} {_shown(figure, effect.before)} → {_shown(figure, effect.after)}"

    def sentence(variant: VariantResult) -> str:
        parts = [
            f"{word} {', '.join(named(effect) for effect in effects)}"
            for word, effects in (("better:", variant.better), ("worse:", variant.worse))
            if effects
        ]
        return f"{variant.name}: {'; '.join(parts) or 'no difference worth a word'}."

    return [sentence(variant) for variant in result.variants[1:]]


def _for_programs(result: VariantsResult) -> Table:
    """One row a variant, the ends of a band behind its figure."""
    rows = []
    for index, variant in enumerate(result.variants):
        row: dict[str, Any] = {"variant": variant.name, "verdict": variant.result.verdict}
        row |= {figure.key: figure.values[index] for figure in result.figures}
        rows.append(with_ends(row, variant.result.bands))
    columns = [Column(name, name) for name in rows[0]]
    return Table("variants", columns, [list(row.values()) for row in rows])
