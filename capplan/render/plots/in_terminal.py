"""Charts drawn in letters by plotext, as wide as the terminal; no colour is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from capplan.render.plots.chart import Area, Axis, Bars, Dots, Line, Mark, Panel, Plot, Point, Rule
from capplan.render.plots.words import wrapped

MAX_WIDTH = 110
MIN_WIDTH = 40
HEIGHT = 18  # rows of a panel, axes included
SMALL_HEIGHT = 12  # where a plot has several
FRAME = 4  # rows that are no canvas: both axes, the ticks and the label
STROKES = {"solid": "braille", "dashed": ".", "dotted": "'"}
LEGEND_STROKES = {"solid": "──", "dashed": "..", "dotted": "''"}
SHAPES = {"circle": "●", "triangle": "▲", "diamond": "◆", "square": "■", "cross": "×"}
HOLLOW = {"circle": "○", "triangle": "△", "diamond": "◇", "square": "□", "cross": "+"}
SHADE = "░"


def texts_of(plots: Sequence[Plot | None], width: int) -> str:
    """Those that there are, below each other."""
    return "\n\n".join(text_of(plot, width) for plot in plots if plot)


def text_of(plot: Plot, width: int) -> str:
    """Title, panels below each other, and what the marks mean; no line longer than ``width``."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    height = HEIGHT if len(plot.panels) == 1 else SMALL_HEIGHT
    lines = wrapped(plot.finding, width)
    for panel in plot.panels:
        if panel.title:
            lines += ["", *wrapped(panel.title, width)]
        if panel.y.label:
            lines += wrapped(panel.y.label, width)
        lines += _panel(panel, width, height)
    return "\n".join([*lines, *_legend(plot, width)])


def _panel(panel: Panel, width: int, height: int) -> list[str]:
    import plotext  # a tenth of a second, and only people look at it

    if _has_bars(panel):
        height = len(panel.y.ticks) + FRAME - (not panel.x.label)  # a line for each row
    plotext.terminal.limit(width=False, height=False)  # the width is ours to choose
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    for name, axis in (("x", panel.x), ("y", panel.y)):
        # Logarithms are taken here: the library's own log scale wants its ticks in logarithms too.
        ruler = figure.ruler(name)
        is_rows = name == "y" and _has_bars(panel)
        # Rows lie in the middle of their lines.
        low, high = (0.0, len(axis.ticks) - 1.0) if is_rows else (axis.low, axis.high)
        ruler.lim(_at(axis, low), _at(axis, high))
        room = width - 14 if name == "x" else (height - FRAME) * 3
        ticks = axis.ticks if is_rows else _thinned(axis, room, name == "x")
        ruler.ticks([_at(axis, value) for value, _ in ticks], [text for _, text in ticks])
    figure.label(panel.x.label, "x")
    for mark in panel.marks:
        for points, marker, joined in _signals(mark, panel, width, height):
            xs = [_at(panel.x, x) for x, _ in points]
            ys = [_at(panel.y, y) for _, y in points]
            figure.draw(figure.signal(xs, ys, marker=marker).lines(joined))
    for (x, y), label, alignment, rows_up in _labels(panel):
        low, high = _at(panel.y, panel.y.low), _at(panel.y, panel.y.high)
        up = rows_up * (high - low) / (height - FRAME)
        at = _at(panel.x, x), min(_at(panel.y, y) + up, high)
        figure.draw(figure.text(*at, label, alignment=alignment))
    drawn = plotext.uncolorize(str(figure.build()))
    return [line.rstrip() for line in drawn.splitlines() if line.strip()]


def _labels(panel: Panel) -> Iterator[tuple[Point, str, str, int]]:
    """Names over the ends of lines, values beyond those of bars; where, aligned how, rows up."""
    for mark in panel.marks:
        match mark:
            case Line(label=str(label)):
                yield mark.points[-1], label, "right", 1
            case Dots(labels=labels) if labels and _has_bars(panel):
                for point, label in zip(mark.points, labels, strict=True):
                    yield point, f"{label} ", "right", 0
            case Bars(labels=labels) if labels:
                for (row, start, end), label in zip(mark.bars, labels, strict=True):
                    if label:
                        rising = end >= start
                        text = f" {label}" if rising else f"{label} "
                        yield (end, row), text, "left" if rising else "right", 0


def _has_bars(panel: Panel) -> bool:
    return any(isinstance(mark, Bars) for mark in panel.marks)


def _at(axis: Axis, value: float) -> float:
    return math.log10(value) if axis.is_log else value


def _thinned(axis: Axis, room: int, across: bool) -> Sequence[tuple[float, str]]:
    """Every tick, or every second or third, so that their texts do not touch."""
    for skip in range(1, len(axis.ticks) + 1):
        chosen = axis.ticks[::skip]
        needed = sum(len(text) + 2 for _, text in chosen) if across else 4 * len(chosen)
        if needed <= room:
            return chosen
    return axis.ticks[:1]


def _signals(
    mark: Mark, panel: Panel, width: int, height: int
) -> Iterator[tuple[Sequence[Point], str, bool]]:
    """Points, the letter that draws them, and whether they are joined."""
    match mark:
        case Line(points, _, stroke):
            yield points, STROKES[stroke], True
        case Dots(points, _, shape, _, is_hollow):
            yield points, (HOLLOW if is_hollow else SHAPES)[shape], False
        case Rule("x", value, _, _, _):
            yield [(value, panel.y.low), (value, panel.y.high)], "|", True
        case Rule("y", value, _, _, _):
            yield [(panel.x.low, value), (panel.x.high, value)], "-", True
        case Area():
            yield list(_filled(mark, panel, 2 * width, 2 * height)), SHADE, False
        case Bars(bars, _, letter, end_mark=end_letter):
            for row, start, end in bars:
                yield [(start, row), (end, row)], letter, start != end
            if end_letter:
                yield [(end, row) for row, _, end in bars], end_letter, False


def _filled(area: Area, panel: Panel, columns: int, rows: int) -> Iterator[Point]:
    """Points of a fine grid that lie within the area; of two values at one x, the later."""
    y = panel.y
    heights = [y.low + (y.high - y.low) * (i + 0.5) / rows for i in range(rows)]
    index = 0
    for i in range(columns):
        x = panel.x.low + (panel.x.high - panel.x.low) * (i + 0.5) / columns
        if not area.xs[0] <= x <= area.xs[-1]:
            continue
        while index + 2 < len(area.xs) and area.xs[index + 1] <= x:
            index += 1
        low = _between(area.xs, area.lows, index, x)
        high = _between(area.xs, area.highs, index, x)
        yield from ((x, height) for height in heights if low <= height <= high)


def _between(xs: Sequence[float], ys: Sequence[float], index: int, x: float) -> float:
    x0, x1 = xs[index], xs[index + 1]
    share = (x - x0) / (x1 - x0) if x1 > x0 else 1.0
    return ys[index] + share * (ys[index + 1] - ys[index])


def _legend(plot: Plot, width: int) -> list[str]:
    named: dict[str, str] = {}
    for panel in plot.panels:
        for mark in panel.marks:
            if mark.name and mark.name not in named:
                named[mark.name] = f"{_letter(mark)} {mark.name}"
    lines: list[str] = []
    for text in named.values():
        if lines and len(lines[-1]) + 3 + len(text) <= width:
            lines[-1] += "   " + text
        else:
            lines += wrapped(text, width)
    return lines


def _letter(mark: Mark) -> str:
    match mark:
        case Line(stroke=stroke):
            return LEGEND_STROKES[stroke]
        case Dots(shape=shape, is_hollow=is_hollow):
            return (HOLLOW if is_hollow else SHAPES)[shape]
        case Rule(axis=axis):
            return "|" if axis == "x" else "--"
        case Area():
            return SHADE * 2
        case Bars(mark=letter, end_mark=end_letter):
            return letter + (end_letter or letter)
