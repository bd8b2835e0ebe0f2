"""`capplan simulate`: from options and a plan to what happens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_INTERRUPTED, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.cli.progress import Progress
from capplan.cli.simulation import ask
from capplan.planner.simulate import SimulateAnswer, simulate_plan
from capplan.render.screen import Screen

if TYPE_CHECKING:  # only where it is drawn
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.simulate/1"


def answer(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Simulate, print, and return the exit code: 1 where a limit is missed or nobody can tell."""
    if texts["plan"] is not None and texts["variant"] is None:
        from capplan.cli.variants import answer_side_by_side, has_variants

        if has_variants(texts["plan"]):
            return answer_side_by_side(texts, as_json, form)
    inputs = Inputs()
    files = _Files(texts["records"], texts["timeline"])
    files.check()
    drawing = PlotOption.of(texts["plot"], "simulation.png", as_json=as_json, form=form)
    asked = ask(texts, inputs)
    with Progress("simulating") as progress:
        found = simulate_plan(asked.question, progress, keep_timeline=files.timeline is not None)

    def screen() -> Screen:
        from capplan.render.simulate import screen as render

        drawn = render(found.result, asked.inputs, inputs.assumptions)
        return drawing.shown(drawn, plots)

    def plots() -> list[Plot | None]:
        from capplan.render.plots.latencies import latencies_plot
        from capplan.render.plots.load import load_plot

        curves = found.curves()
        return [
            latencies_plot(found.result, curves, asked.inputs),
            load_plot(found.result, curves, asked.inputs),
        ]

    files.write(found)
    drawing.save(plots)
    show(SCHEMA, asked.inputs, inputs.assumptions, found.result, screen, as_json=as_json, form=form)
    if found.result.end == "interrupted":
        return EXIT_INTERRUPTED
    return EXIT_FINE if found.result.feasible else EXIT_NO


class _Files(NamedTuple):
    """What is written beside the answer, before it: an answer is whole, or there is none."""

    records: str | None
    timeline: str | None

    def check(self) -> None:
        """Refuse, before any work, what could not be written."""
        from capplan.render.new_file import check_new_file

        if self.records is not None:
            from capplan.render.simulate_records import SUFFIXES

            check_new_file(self.records, "--records", SUFFIXES)
        if self.timeline is not None:
            check_new_file(self.timeline, "--timeline", (".json",))

    def write(self, found: SimulateAnswer) -> None:
        said = environment().stderr
        if self.records is not None:
            from capplan.render.simulate_records import write

            rows = found.rows()
            write(rows, Path(self.records))
            said.write(f"wrote {self.records}: {len(rows):,} requests\n")
        if self.timeline is not None:
            from capplan.render.simulate_timeline import write as write_timeline

            timeline = found.timeline()
            write_timeline(timeline, Path(self.timeline))
            part = "" if timeline.is_whole else f": the first {timeline.until_s:.3g} s"
            said.write(f"wrote {self.timeline}{part}; open it in ui.perfetto.dev\n")
