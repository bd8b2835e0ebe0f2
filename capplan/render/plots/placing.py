"""Labels beside points, lines and bars, where they cover neither each other nor a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from capplan.render.plots.chart import Bars, Dots, Line, Panel, Point, Rule

FONT_SIZE = 9.5
SUBJECT_SIZE = 10


class _Way(NamedTuple):
    """Where a label may stand: points from what it names, and how it is aligned there."""

    right: float
    up: float
    ha: str
    va: str


_Place = tuple[Point, _Way]
# Best first.
_AROUND = (
    _Way(8, -4, "left", "top"),
    _Way(0, 8, "center", "bottom"),
    _Way(-7, 5, "right", "bottom"),
    _Way(7, 5, "left", "bottom"),
    _Way(0, -8, "center", "top"),
    _Way(-8, -4, "right", "top"),
    _Way(10, 0, "left", "center"),
    _Way(-10, 0, "right", "center"),
)
_OVER_END = (
    _Way(-2, 3, "right", "bottom"),
    _Way(-2, 9, "right", "bottom"),  # over the dots
    _Way(-2, -4, "right", "top"),
)
_RIGHT_OF, _LEFT_OF = _Way(4, 0, "left", "center"), _Way(-4, 0, "right", "center")


def place_subject(figure: Any, title: Any, subject: str) -> None:
    """On the last line of the title, which was left empty for it, in regular letters."""
    box = title.get_window_extent(figure.canvas.get_renderer())
    x, y = figure.transSubfigure.inverted().transform((box.x0, box.y0))
    figure.text(x, y, subject, fontsize=SUBJECT_SIZE, va="bottom", ha="left").set_in_layout(False)


def place_labels(axes: Any, panel: Panel) -> None:
    """Write what has room within the axes; a label that has none is left out."""
    renderer = axes.figure.canvas.get_renderer()
    inside = axes.get_window_extent(renderer).padded(2)
    taken = [*(_box(axes, point) for point in _dots(panel)), *_bars(axes, panel)]
    curves = _curves(axes, panel)
    for label, places in _labels(axes, panel):
        if not label:
            continue
        for (point, way), may_cross in [(at, False) for at in places] + [
            (at, True) for at in places
        ]:
            text = axes.annotate(
                label, point, textcoords="offset points", xytext=(way.right, way.up),
                ha=way.ha, va=way.va, fontsize=FONT_SIZE, zorder=9,
            )  # fmt: skip
            text.set_in_layout(False)  # the layout has been found without them
            box = text.get_window_extent(renderer)
            free = _within(box, inside) and not any(box.overlaps(other) for other in taken)
            crossed = any(curve.intersects_bbox(box, filled=False) for curve in curves)
            if free and (may_cross or not crossed):
                taken.append(box)
                break
            text.remove()


def _labels(axes: Any, panel: Panel) -> Iterator[tuple[str, list[_Place]]]:
    """Each label with the places where it may stand, best first."""
    for mark in panel.marks:
        match mark:
            case Line(label=str(label)):
                before, last = axes.transData.transform(list(mark.points[-2:]))
                spots = [last + (before - last) * share for share in (0, 0.25, 0.5, 0.75)]
                points = axes.transData.inverted().transform(spots)
                yield label, [(tuple(at), way) for at in points for way in _OVER_END]
            case Dots(labels=labels) if labels:
                for point, label in zip(mark.points, labels, strict=True):
                    yield label, [(point, way) for way in _AROUND]
            case Bars(labels=labels) if labels:
                for (row, start, end), label in zip(mark.bars, labels, strict=True):
                    ways = (_RIGHT_OF, _LEFT_OF) if end >= start else (_LEFT_OF, _RIGHT_OF)
                    yield label, [((end, row), way) for way in ways]


def _dots(panel: Panel) -> list[Point]:
    return [point for mark in panel.marks if isinstance(mark, Dots) for point in mark.points]


def _curves(axes: Any, panel: Panel) -> list[Any]:
    """Lines and rules, in pixels."""
    from matplotlib.path import Path

    found: list[Sequence[Point]] = []
    for mark in panel.marks:
        match mark:
            case Line(points):
                found.append(points)
            case Rule("x", value):
                found.append([(value, panel.y.low), (value, panel.y.high)])
            case Rule("y", value):
                found.append([(panel.x.low, value), (panel.x.high, value)])
    return [Path(axes.transData.transform(list(points))) for points in found]


def _bars(axes: Any, panel: Panel) -> list[Any]:
    """What bars cover, in pixels."""
    from matplotlib.transforms import Bbox

    found = []
    for mark in panel.marks:
        if isinstance(mark, Bars):
            for row, start, end in mark.bars:
                x0, x1 = min(start, end), max(start, end)
                corners = [(x0, row - mark.height / 2), (x1, row + mark.height / 2)]
                (left, low), (right, high) = axes.transData.transform(corners)
                found.append(Bbox.from_extents(left, low, right, high))
    return found


def _box(axes: Any, point: Point) -> Any:
    """What a dot covers, in pixels."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform(point)
    reach = 4.5 * axes.figure.get_dpi() / 72
    return Bbox.from_extents(x - reach, y - reach, x + reach, y + reach)


def _within(box: Any, around: Any) -> bool:
    return bool(
        box.x0 >= around.x0 and box.x1 <= around.x1 and box.y0 >= around.y0 and box.y1 <= around.y1
    )
