"""A plot as a PNG or SVG file, by matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings

from capplan.errors import CapplanError, Location
from capplan.render.new_file import check_new_file

SUFFIXES = (".png", ".svg")


def check_file(name: str, example: str = "roofline.svg") -> None:
    """Refuse, before any work, a file that could not be written; nothing is overwritten."""
    check_new_file(name, "--plot", SUFFIXES, hint=f"name it {example}")
    if find_spec("matplotlib") is None:
        raise CapplanError(
            "--plot needs matplotlib", hint="pip install 'capplan[plot]'; or leave out --plot"
        )


def write_figure(path: Path, draw: Callable[[Any], None]) -> None:
    """Let ``draw`` fill the axes of a figure and write it; CapplanError where that fails."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Same input, same bytes: no date, no random ids.
    with mpl.rc_context({"svg.hashsalt": "capplan", "font.size": 11}):
        figure = Figure(figsize=(9, 5.6), layout="constrained")
        canvas = FigureCanvasSVG if path.suffix.lower() == ".svg" else FigureCanvasAgg
        canvas(figure)
        draw(figure.add_subplot())
        try:
            metadata: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
            # A letter that the font lacks becomes a box; a warning would help nobody.
            with catch_warnings(action="ignore", category=UserWarning):
                figure.savefig(path, dpi=160, metadata=metadata)
        except OSError as error:
            raise CapplanError(
                f"cannot be written: {error.strerror}", location=Location(str(path))
            ) from None
