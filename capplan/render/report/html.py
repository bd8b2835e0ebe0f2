"""A page as one HTML file that loads nothing: jinja2 escapes whatever a user has named."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError
from capplan.render.explain import quantity
from capplan.render.plots.chart import Plot
from capplan.render.plots.files import svg_of
from capplan.render.report.cells import Texts, texts_of
from capplan.render.report.page import Block, Page, Picture, Sheet
from capplan.render.screen import Table

_FOLDER = Path(__file__).resolve().parent
_BARS = ("bar",)  # drawn in letters, for terminals: the page has the plot


def check_extra() -> None:
    """Refuse, before any work, where the libraries are missing."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise CapplanError(
            f"--format html needs {' and '.join(missing)}",
            hint="pip install 'capplan[report]'; or --format markdown",
        )


def html(page: Page) -> str:
    """The document. Its policy forbids to load anything, and to run what is not ours."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["quantity"] = quantity
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    def svg(picture: Picture) -> Any:
        described = Markup("</title><desc>{}</desc>").format(_in_words(picture.plot))
        return Markup(svg_of(picture.plot).replace("</title>", described, 1))

    def sheet(table: Table) -> Texts:
        return texts_of(table, _BARS)

    return (
        environment.get_template("page.html.j2")
        .render(
            page=page,
            sheet=sheet,
            groups=_groups,
            svg=svg,
            style=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
        )
        .rstrip()
        + "\n"
    )


def _groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """Neighbouring tables, and plots, together: they stand side by side where there is room."""
    found: list[list[Block]] = []
    for block in blocks:
        if found and isinstance(block, (Sheet, Picture)) and block.kind == found[-1][-1].kind:
            found[-1].append(block)
        else:
            found.append([block])
    return found


def _in_words(plot: Plot) -> str:
    """What is drawn, for those who cannot see it; the finding is the picture's title."""
    panels = [
        f"{panel.y.label} against {panel.x.label}" if panel.x.label else panel.y.label
        for panel in plot.panels
    ]
    return f"{'; '.join(text for text in panels if text)}. {plot.subject}."
