"""A page as markdown, for a repository or a ticket; plots are drawn in letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from capplan.render.explain import quantity
from capplan.render.plots.in_terminal import text_of
from capplan.render.report.cells import Texts, texts_of
from capplan.render.report.page import (
    Block,
    Code,
    Formulas,
    Page,
    Picture,
    Points,
    Sheet,
    Tiles,
    Words,
)

PLOT_WIDTH = 90
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def markdown(page: Page) -> str:
    """GitHub's kind: tables, fences, `<details>`."""
    lines = [f"# {escaped(page.headline)}", ""]
    for text in page.lead:
        lines += [escaped(text), ""]
    for block in page.top:
        lines += _block(block)
    for section in page.sections:
        lines += [f"## {escaped(section.heading)}", ""]
        if section.folded:
            lines += [f"<details><summary>{_entities(section.summary)}</summary>", ""]
        for block in section.blocks:
            lines += _block(block)
        if section.folded:
            lines += ["</details>", ""]
    return "\n".join([*lines, escaped(page.footer)]) + "\n"


def escaped(text: str) -> str:
    """On one line, with nothing in it that markdown would read.

    >>> print(escaped("a_b | <img>"))
    a\\_b \\| \\<img\\>
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fence(text: str) -> str:
    """Longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def code(text: str) -> str:
    """A span of code, in a table too.

    >>> code("a | b"), code("a ` b")
    ('`a \\\\| b`', '`` a ` b ``')
    """
    text = " ".join(text.split()).replace("|", "\\|")
    if "`" not in text:
        return f"`{text}`"
    longest = max(len(run) for run in re.findall("`+", text))
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def _block(block: Block) -> list[str]:
    match block:
        case Words(texts):
            return [line for text in texts for line in (escaped(text), "")]
        case Points(points):
            return [*(f"- **{escaped(name)}**: {escaped(text)}" for name, text in points), ""]
        case Tiles(tiles):
            rows = [(escaped(t.name), f"**{escaped(t.value)}**", escaped(t.note)) for t in tiles]
            return [*_rows(("", "", ""), rows, (False, False, False)), ""]
        case Sheet(table):
            return _sheet(texts_of(table))
        case Picture():
            return _picture(block)
        case Code():
            return _code_block(block)
        case Formulas():
            return list(_formulas(block))


def _code_block(block: Code) -> list[str]:
    fence = _fence(block.text)
    lines = [f"{fence}{block.language}", block.text.rstrip(), fence, ""]
    if block.folded:
        head = f"<details><summary>{_entities(block.name)}</summary>"
        return [head, "", *lines, "</details>", ""]
    return [f"### {escaped(block.name)}", "", *lines]


def _picture(picture: Picture) -> list[str]:
    plot = picture.plot
    drawn = text_of(plot, PLOT_WIDTH)
    fence = _fence(drawn)
    drawn_by = f" Drawn by {code(picture.command)}." if picture.command else ""
    return [f"{fence}text", drawn, fence, "", f"{escaped(plot.subject)}.{drawn_by}", ""]


def _sheet(found: Texts) -> list[str]:
    heads = [escaped(head.text) for head in found.heads]
    rows = [[escaped(cell.text) for cell in row] for row in found.rows]
    lines = [f"**{escaped(found.title)}**", ""]
    lines += _rows(heads, rows, [head.right for head in found.heads])
    if found.note:
        lines += ["", escaped(found.note)]
    return [*lines, ""]


def _rows(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join("---:" if one else "---" for one in right) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _formulas(block: Formulas) -> Iterator[str]:
    for number, figure in enumerate(block.figures, 1):
        value = escaped(quantity(figure.value, figure.unit))
        yield f"### {number}. {escaped(figure.name)} = {value}"
        yield ""
        yield f"{escaped(figure.why)} {escaped(figure.picture)}"
        yield ""
        fence = _fence(figure.formula + figure.filled)
        yield from (fence, figure.formula, figure.filled, fence, "")
        if figure.symbols:
            yield from _rows(
                ("symbol", "value", "meaning"),
                [
                    (code(s.name), escaped(quantity(s.value, s.unit)), escaped(s.meaning))
                    for s in figure.symbols
                ],
                (False, True, False),
            )
            yield ""
        yield f"Check: {escaped(figure.check)} Source: {escaped(figure.source)}"
        yield ""
