"""Utilisation by block size, drawn in the terminal."""

from __future__ import annotations

import math

from capplan.render import shows
from capplan.results.kv import KvResult

PLOT_HEIGHT = 12
MAX_PLOT_WIDTH = 80


def plot(result: KvResult, width: int) -> str:
    """Paged utilisation over block size, and the line of static pre-allocation."""
    import plotext  # a tenth of a second, and only people look at it

    plotext.terminal.limit(width=False, height=False)  # the width is ours to choose
    figure = plotext.figure
    figure.clear()
    figure.plot_size(min(width, MAX_PLOT_WIDTH), PLOT_HEIGHT)
    sizes = [row.block_size for row in result.blocks]
    # Logarithms are taken here: the library's own log scale wants its ticks in logarithms too.
    places = [math.log2(size) for size in sizes]
    across, up = figure.ruler("x"), figure.ruler("y")
    across.lim(places[0] - 0.2, places[-1] + 0.2)
    across.ticks(places, [f"{size}" for size in sizes])
    up.lim(0, 105)
    up.ticks([0, 25, 50, 75, 100], [f"{share} %" for share in (0, 25, 50, 75, 100)])
    ends, static = [places[0], places[-1]], 100 * result.static_utilisation
    figure.draw(figure.signal(ends, [static, static], marker=".").lines(True))
    paged = [100 * row.paged_utilisation for row in result.blocks]
    figure.draw(figure.signal(places, paged, marker="o").lines(False))
    figure.label("tokens a block   (o paged, dotted: static)", "x")
    drawn = plotext.uncolorize(str(figure.build()))
    lines = [line.rstrip() for line in drawn.splitlines()]
    title = f"Slots that hold a token, over {shows.plural(result.num_lengths, 'request')}"
    return "\n".join([title, *(line for line in lines if line)])
