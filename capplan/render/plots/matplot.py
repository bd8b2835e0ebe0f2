"""Charts drawn by matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from warnings import catch_warnings

from capplan.render.plots.chart import Area, Bars, Dots, Ink, Line, Panel, Plot, Rule
from capplan.render.plots.placing import place_labels, place_subject
from capplan.render.plots.words import wrapped

WIDTH_IN = 6.4
TITLE_LETTERS = 57  # a line of the title
SUBJECT_LETTERS = 80
# Okabe-Ito: told apart with any colour vision; strokes, shapes and hatches repeat what they say.
COLOURS: dict[Ink | str, str] = {
    "ink": "#1a1a1a",
    "grey": "#767676",
    "blue": "#0072b2",
    "orange": "#e69f00",
    "green": "#009e73",
    "red": "#d55e00",
    "sky": "#56b4e9",
    "purple": "#cc79a7",
    "paper": "#ffffff",
}
STROKES = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1, 1.6))}
SHAPES = {"circle": "o", "triangle": "^", "diamond": "D", "square": "s", "cross": "X"}
SETTINGS: Any = {
    "svg.hashsalt": "capplan",  # same input, same bytes: no random ids
    "svg.fonttype": "path",  # looks the same where the font is missing
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
    "hatch.linewidth": 0.8,
    "axes.titlesize": 11,
    "legend.fontsize": 10,
    "text.parse_math": False,  # a name from a file may hold `$`, which would start a formula
}


@contextmanager
def drawn(plots: Sequence[Plot], *, with_title: bool = True) -> Iterator[Any]:
    """A figure with the plots below each other, and matplotlib set as it was drawn."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # A letter that the font lacks becomes a box; a warning would help nobody.
    with mpl.rc_context(SETTINGS), catch_warnings(action="ignore", category=UserWarning):
        heights = [plot.height_in for plot in plots]
        figure = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        parts = figure.subfigures(len(plots), 1, height_ratios=heights, squeeze=False)
        pairs = list(zip(parts.flat, plots, strict=True))
        titles = [_fill(part, plot, with_title=with_title) for part, plot in pairs]
        figure.draw_without_rendering()  # only now is it known where things are
        for (part, plot), title in zip(pairs, titles, strict=True):
            if title:
                place_subject(part, title, "\n".join(wrapped(plot.subject, SUBJECT_LETTERS)))
            for axes, panel in zip(part.axes, plot.panels, strict=True):
                place_labels(axes, panel)
        yield figure


def _fill(figure: Any, plot: Plot, *, with_title: bool) -> Any:
    """Everything but what must know where things are; returns the title."""
    title = None
    if with_title:
        # The empty lines are room for the subject.
        rows = [*wrapped(plot.finding, TITLE_LETTERS)]
        rows += [" "] * len(wrapped(plot.subject, SUBJECT_LETTERS))
        text = "\n".join(rows)
        title = figure.suptitle(text, x=0.01, ha="left", fontsize=12, fontweight="bold")
    num_rows = -(-len(plot.panels) // plot.num_columns)
    grid = figure.subplots(num_rows, plot.num_columns, squeeze=False).flat
    for axes, panel in zip(grid, plot.panels, strict=True):
        _draw(axes, panel, plot.num_columns)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        columns = _columns([*handles])
        figure.legend(
            handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False,
            handlelength=2.4, columnspacing=1.6,
        )  # fmt: skip
    return title


def _columns(names: Sequence[str]) -> int:
    """As many as the figure's width has room for."""
    most = max(map(len, names)) + 6
    return max(1, min(len(names), 74 // most))


def _draw(axes: Any, panel: Panel, num_columns: int) -> None:
    axes.set_axisbelow(True)
    for order, mark in enumerate(panel.marks):
        _mark(axes, mark, 2 + order / 100)
    for name, axis in (("x", panel.x), ("y", panel.y)):
        if axis.is_log:
            axes.set(**{f"{name}scale": "log"})
        axes.set(**{f"{name}lim": (axis.low, axis.high), f"{name}label": axis.label})
        own = getattr(axes, f"{name}axis")
        own.set_ticks([v for v, _ in axis.ticks], [text for _, text in axis.ticks])
        own.set_ticks([], minor=True)
    axes.grid(visible=True, color=COLOURS["ink"], alpha=0.12, linewidth=0.8)
    if any(isinstance(mark, Bars) for mark in panel.marks):
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    if panel.title:
        lines = wrapped(panel.title, TITLE_LETTERS // num_columns)
        axes.set_title("\n".join(lines), loc="left")


def _mark(axes: Any, mark: object, order: float) -> None:
    match mark:
        case Line(points, colour, stroke, name):
            xs, ys = zip(*points, strict=True)
            axes.plot(
                xs, ys, color=COLOURS[colour], linestyle=STROKES[stroke], linewidth=1.8,
                label=name, zorder=order,
            )  # fmt: skip
        case Dots(points, colour, shape, name, is_hollow):
            xs, ys = zip(*points, strict=True)
            axes.plot(
                xs, ys, SHAPES[shape], color=COLOURS[colour], markersize=8, label=name,
                markerfacecolor=COLOURS["paper"] if is_hollow else COLOURS[colour],
                markeredgewidth=1.6, zorder=order + 1,
            )  # fmt: skip
        case Area(xs, lows, highs, colour, name):
            axes.fill_between(
                xs, lows, highs, facecolor=COLOURS[colour], alpha=0.25, linewidth=0, label=name,
                zorder=order,
            )  # fmt: skip
        case Rule(axis, value, colour, stroke, name):
            across = axes.axvline if axis == "x" else axes.axhline
            across(value, color=COLOURS[colour], linestyle=STROKES[stroke], linewidth=1.4,
                   label=name, zorder=order)  # fmt: skip
        case Bars(bars, colour, _, name, hatch, height):
            rows, starts, ends = zip(*bars, strict=True)
            axes.barh(
                rows, [b - a for a, b in zip(starts, ends, strict=True)], height, left=starts,
                color=COLOURS[colour], edgecolor=COLOURS["ink"], linewidth=0.5, hatch=hatch,
                label=name, zorder=order,
            )  # fmt: skip
