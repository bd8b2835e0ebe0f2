"""A document as data: sections of blocks, which `html` and `markdown` write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from capplan.render.plots.chart import Plot
from capplan.render.screen import Table
from capplan.results.explanation import Figure


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs; ``tone`` is said by a mark too: good | bad | open | plain."""

    texts: Sequence[str]
    tone: str = "plain"
    kind: str = field(default="words", init=False)


@dataclass(frozen=True, slots=True)
class Points:
    """(heading, sentence) each."""

    points: Sequence[tuple[str, str]]
    kind: str = field(default="points", init=False)


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the headline. ``tone`` as for words."""

    name: str
    value: str
    note: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Tiles:
    tiles: Sequence[Tile]
    kind: str = field(default="tiles", init=False)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of a screen."""

    table: Table
    kind: str = field(default="sheet", init=False)


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot, and the command that draws it, where one does."""

    plot: Plot
    command: str | None
    kind: str = field(default="picture", init=False)


@dataclass(frozen=True, slots=True)
class Code:
    """A text to copy: a command line or a file."""

    name: str
    text: str
    language: str = "sh"
    folded: bool = False
    kind: str = field(default="code", init=False)


@dataclass(frozen=True, slots=True)
class Formulas:
    figures: Sequence[Figure]
    kind: str = field(default="formulas", init=False)


Block = Words | Points | Tiles | Sheet | Picture | Code | Formulas


@dataclass(frozen=True, slots=True)
class Section:
    """``folded`` sections open at a click; ``summary`` says what is inside."""

    id: str
    heading: str
    blocks: Sequence[Block]
    folded: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    kicker: str
    headline: str
    lead: Sequence[str]
    top: Sequence[Block]  # before the first section
    sections: Sequence[Section]
    footer: str
