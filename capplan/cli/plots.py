"""The option `--plot`: into a new file, or with `-` on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from capplan.cli.environment import environment
from capplan.errors import CapplanError

if TYPE_CHECKING:  # answers without a plot load nothing of it
    from capplan.render.plots.chart import Plot
    from capplan.render.screen import Screen

SCREEN = "-"


@dataclass(frozen=True, slots=True)
class PlotOption:
    """Where plots go: nowhere, to a file, or to the screen."""

    name: str | None

    @classmethod
    def of(cls, name: str | None, example: str, *, as_json: bool, form: str) -> PlotOption:
        """Raises CapplanError, before any work, where the plot could not be written or shown."""
        if name == SCREEN:
            is_screen = form == "table" or (form == "auto" and environment().is_terminal)
            if as_json or not is_screen:
                raise CapplanError(
                    "--plot - draws on a screen, and this answer is for programs",
                    hint=f"add --format table, or give a file: --plot {example}",
                )
        elif name is not None:
            from capplan.render.plots.files import check_file

            check_file(name, example)
        return cls(name)

    def save(self, plots: Callable[[], Sequence[Plot | None]]) -> None:
        """To its file, where it goes to one: before the answer, which is whole or not at all."""
        if self.name is None or self.name == SCREEN:
            return
        from capplan.render.plots.files import write

        drawn = [plot for plot in plots() if plot]
        if not drawn:
            environment().stderr.write(f"nothing to draw: no {self.name}\n")
            return
        write(drawn, Path(self.name))
        environment().stderr.write(f"wrote {self.name}\n")

    def shown(self, screen: Screen, plots: Callable[[], Sequence[Plot | None]]) -> Screen:
        """The screen, with the plots on it where they were asked for there."""
        if self.name != SCREEN:
            return screen
        from capplan.render.plots.in_terminal import texts_of

        return replace(screen, plot=lambda width: texts_of(plots(), width))
