"""Plots as PNG or SVG files, and as SVG for a page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from capplan.errors import UNWRITABLE, CapplanError, Location
from capplan.render.new_file import check_new_file
from capplan.render.plots.chart import Plot
from capplan.render.plots.matplot import COLOURS, drawn

SUFFIXES = (".png", ".svg")
PNG_DPI = 200
MISSING = "pip install 'capplan[plot]'"


def check_file(name: str, example: str = "roofline.svg") -> None:
    """Refuse, before any work, a file that could not be written; nothing is overwritten."""
    check_new_file(name, "--plot", SUFFIXES, hint=f"name it {example}")
    if not can_draw():
        raise CapplanError("--plot needs matplotlib", hint=f"{MISSING}; or leave out --plot")


def can_draw() -> bool:
    """Whether matplotlib, the extra `plot`, is there."""
    return find_spec("matplotlib") is not None


def write(plots: Sequence[Plot], path: Path) -> None:
    """All plots below each other in one new file; CapplanError where it cannot be written."""
    is_svg = path.suffix.lower() == ".svg"
    metadata: dict[str, Any] = {"Date": None} if is_svg else {}
    with drawn(plots) as figure:
        try:
            figure.savefig(path, dpi=PNG_DPI, metadata=metadata)
        except OSError as error:
            raise CapplanError(
                f"cannot be written: {error.strerror}",
                location=Location(str(path)),
                hint=UNWRITABLE,
            ) from None


def svg_of(plot: Plot, *, with_title: bool = False) -> str:
    """An `<svg>` element to stand inside a page, light or dark; needs `can_draw()`.

    Its ink is `currentColor`, its ground transparent. Colours are the custom properties
    `--plot-blue` (orange, green, red, sky, purple, grey) and `--plot-paper`, which a page may set;
    else those of the files. Ids begin with the plot's name, so that several stand in one page.
    It scales with its container (`viewBox`, no fixed size) and is named for screen readers.
    """
    stream = io.StringIO()
    with drawn([plot], with_title=with_title) as figure:
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = _own_ids(text, plot.name)
    for name, colour in COLOURS.items():
        text = text.replace(colour, _property(name, colour))
    head, rest = text.split(">", 1)
    view = re.search(r'viewBox="[^"]*"', head)
    assert view is not None
    name = f"{plot.name}-title"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{view[0]} width="100%" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{escape(plot.finding)}</title>{rest}'
    )


def _own_ids(text: str, name: str) -> str:
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return re.sub(r"url\(#", f"url(#{name}-", text)


def _property(name: str, colour: str) -> str:
    return "currentColor" if name == "ink" else f"var(--plot-{name}, {colour})"
