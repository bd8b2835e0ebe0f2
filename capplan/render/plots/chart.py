"""What a plot shows, as data: `matplot` draws it into a file, `in_terminal` for a person.

Both draw the same chart, so a picture and a terminal cannot disagree. Coordinates are in the units
that the axes' labels name; a logarithmic axis takes its values as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Point = tuple[float, float]
Stroke = Literal["solid", "dashed", "dotted"]
Shape = Literal["circle", "triangle", "diamond", "square", "cross"]
Ink = Literal["ink", "grey", "blue", "orange", "green", "red", "sky", "purple"]


@dataclass(frozen=True, slots=True)
class Axis:
    """``label`` has the unit; ``ticks`` are (value, text), within ``low`` to ``high``."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Through its points; a curve that goes in steps has the corners among them.

    ``label`` stands over its right end: where several are drawn alike, their names.
    """

    points: Sequence[Point]
    colour: Ink
    stroke: Stroke = "solid"
    name: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Dots:
    """Points told apart by shape and filling; ``labels`` stand beside them where there is room."""

    points: Sequence[Point]
    colour: Ink
    shape: Shape
    name: str | None = None
    is_hollow: bool = False
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Area:
    """Between ``lows`` and ``highs`` over the same ``xs``."""

    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    colour: Ink
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across the panel at one value of an axis: a limit, today."""

    axis: Literal["x", "y"]
    value: float
    colour: Ink
    stroke: Stroke = "dashed"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars (row, from, to), all of one kind, told apart by hatch as well as colour.

    ``mark`` is the letter that draws them in the terminal, ``end_mark`` that of their ends;
    ``labels`` stand at their far ends.
    """

    bars: Sequence[tuple[float, float, float]]
    colour: Ink
    mark: str
    name: str | None = None
    hatch: str = ""
    height: float = 0.6
    labels: Sequence[str] = ()
    end_mark: str = ""


Mark = Line | Dots | Area | Rule | Bars


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; later marks cover earlier ones."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """``finding`` is the title: a sentence with the numbers that the picture shows.

    ``subject`` says of what: model, accelerator, traffic.
    """

    name: str
    finding: str
    subject: str
    panels: Sequence[Panel]
    num_columns: int = 1
    height_in: float = 4.7
