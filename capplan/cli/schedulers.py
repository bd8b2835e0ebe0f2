"""`capplan simulate --compare-schedulers`: one deployment and its traffic under every scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capplan.cli.exit_codes import EXIT_FINE, EXIT_INTERRUPTED
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.cli.progress import Progress
from capplan.cli.simulation import ask
from capplan.errors import CapplanError
from capplan.planner.compare_schedulers import SchedulersQuestion, compare_schedulers
from capplan.planner.schedulers_bands import with_bands
from capplan.render.screen import Screen
from capplan.results.schedulers import SchedulersInputs

if TYPE_CHECKING:  # only where it is drawn
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.schedulers/1"


def answer(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Compare, print, plot where asked; the exit code says nothing about limits."""
    for name in ("records", "timeline"):
        if texts[name] is not None:
            raise CapplanError(
                f"--{name} is about one run, and --compare-schedulers makes several",
                hint="leave one of the two out",
            )
    inputs = Inputs()
    drawing = PlotOption.of(texts["plot"], "schedules.svg", as_json=as_json, form=form)
    asked = ask(texts, inputs)
    question, given = asked.question, asked.inputs
    # Limits do not take part, so nothing is assumed about them.
    assumptions = [a for a in inputs.assumptions if not a.option.startswith("--slo")]
    understood = SchedulersInputs(
        **{name: getattr(given, name) for name in SchedulersInputs.__slots__}
    )
    compared = SchedulersQuestion(
        traffic=lambda: question.traffic(question.seed),
        config=question.serving.config,
        step_time=question.serving.step_time,
        fleet=question.fleet,
        front_end_s=question.serving.overheads.ttft_s,
    )
    with Progress("simulating") as progress:
        result = compare_schedulers(compared, progress)
    result = with_bands(result, question.serving, question.traffic(question.seed))

    def screen() -> Screen:
        from capplan.render.schedulers import screen as render

        return drawing.shown(render(result, understood, assumptions), plots)

    def plots() -> list[Plot | None]:
        from capplan.planner.schedules import schedules
        from capplan.render.plots.schedules import schedules_plot

        return [schedules_plot(schedules(compared), understood)]

    drawing.save(plots)
    show(SCHEMA, understood, assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_INTERRUPTED if result.interrupted else EXIT_FINE
