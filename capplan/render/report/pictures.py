"""The plots of a report, by name; each with the command that draws it, where one does."""

from __future__ import annotations

from capplan.render.plots.chart import Plot
from capplan.render.plots.latencies import latencies_plot
from capplan.render.plots.load import load_plot
from capplan.render.plots.roofline import roofline_plot
from capplan.render.report.page import Picture
from capplan.results.report import Report


def pictures_of(report: Report) -> dict[str, Picture]:
    """Only those that the answer has the figures for."""
    run = report.run
    found: list[tuple[Plot | None, str | None]] = [
        (roofline_plot([report.roofline]), report.roofline_command),
    ]
    if run is not None:
        found += [
            (latencies_plot(run.result, run.curves, run.inputs), run.command),
            (load_plot(run.result, run.curves, run.inputs), None),  # the same command draws both
        ]
    return {
        plot.name: Picture(plot, None if command is None else f"{command} --plot {plot.name}.svg")
        for plot, command in found
        if plot is not None
    }
