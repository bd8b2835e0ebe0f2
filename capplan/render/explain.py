"""An explanation as text or markdown: five steps a figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from capplan import units
from capplan.render import shows
from capplan.results.assumptions import Assumption
from capplan.results.explanation import Explanation, Figure

_STEPS = ("Why", "Picture", "Formula", "Numbers", "Check")
_INDENT = 9


def quantity(value: float, unit: str) -> str:
    """A value for people, with its unit."""
    if unit == "s":
        return shows.duration(value)
    if unit == "bytes":
        return shows.binary_bytes(value) if value >= units.MIB else f"{value:,.7g} B"
    if unit == "bytes/s":
        return shows.bandwidth(value)
    if unit == "FLOP/s":
        return shows.flops(value)
    if unit == "FLOP":
        return f"{shows.number(value / units.TERA)} TFLOP"
    if unit == "$":
        return shows.money(value)
    if unit == "W":
        return units.format_power(value, digits=shows.DIGITS)
    whole = value == int(value) and abs(value) < 1e15
    text = f"{int(value):,}" if whole else shows.number(value)
    return f"{text} {unit}" if unit else text


def text(found: Explanation, assumptions: list[Assumption], width: int) -> str:
    """Plain text for a terminal or a file."""
    lines = textwrap.wrap(found.headline, width)
    for number, figure in enumerate(found.figures, 1):
        lines += ["", f"{number}. {figure.name} = {quantity(figure.value, figure.unit)}"]
        for step, words in zip(_STEPS, _words(figure), strict=True):
            lines += _step(step, words, width)
            if step == "Formula":
                lines += _where(figure, width)
        lines += _step("Source", figure.source, width)
    if found.left_out:
        lines += ["", "Not by one formula"]
        for note in found.left_out:
            lines += textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="  ")
    if assumptions:
        lines += ["", "Assumed"]
        for one in assumptions:
            note = f"{one.what}: {one.value} ({one.option})"
            lines += textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _words(figure: Figure) -> tuple[str, ...]:
    return (figure.why, figure.picture, figure.formula, figure.filled, figure.check)


def _step(name: str, words: str, width: int) -> list[str]:
    head = f"  {name}".ljust(_INDENT + 3)
    return textwrap.wrap(
        words,
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )


def _where(figure: Figure, width: int) -> Iterator[str]:
    for symbol in figure.symbols:
        words = f"{symbol.name} = {quantity(symbol.value, symbol.unit)}, {symbol.meaning}"
        yield from _step("", words, width)


def markdown(found: Explanation, assumptions: list[Assumption]) -> str:
    """A page for a review or a repository."""
    lines = [f"# {found.headline}"]
    for number, figure in enumerate(found.figures, 1):
        value = quantity(figure.value, figure.unit)
        lines += ["", f"## {number}. {figure.name}: {value}", ""]
        for step, words in zip(_STEPS, _words(figure), strict=True):
            shown = f"`{words}`" if step in ("Formula", "Numbers") else words
            lines.append(f"- **{step}**: {shown}")
        lines.append(f"- **Source**: {figure.source}")
        if figure.symbols:
            lines += ["", "| symbol | value | meaning |", "|---|---:|---|"]
            lines += [
                f"| `{s.name}` | {quantity(s.value, s.unit)} | {s.meaning.replace('|', '/')} |"
                for s in figure.symbols
            ]
    if found.left_out:
        lines += ["", "## Not by one formula", "", *(f"- {note}" for note in found.left_out)]
    if assumptions:
        lines += ["", "## Assumed", "", "| what | value | changed with |", "|---|---|---|"]
        lines += [f"| {a.what} | {a.value} | `{a.option}` |" for a in assumptions]
    return "\n".join(lines) + "\n"
