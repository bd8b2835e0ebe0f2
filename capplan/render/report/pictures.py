"""The plots of a report, by name; each with the command that draws it, where one does."""

from __future__ import annotations

from capplan.render.plots.chart import Plot
from capplan.render.plots.latencies import latencies_plot
from capplan.render.plots.load import load_plot
from capplan.render.plots.roofline import roofline_plot
from capplan.render.plots.tornado import tornado_plot
from capplan.render.plots.traffic import traffic_plot
from capplan.render.report.page import Picture
from capplan.results.report import Report


def pictures_of(report: Report) -> dict[str, Picture]:
    """Only those that the answer has the figures for."""
    result, asked, run = report.answer, report.question, report.run
    plots: list[Plot | None] = [
        traffic_plot(result, asked, report.traffic),
        tornado_plot(result, asked),
        roofline_plot([report.roofline]),
    ]
    if run is not None:
        plots.append(latencies_plot(run.result, run.curves, run.inputs))
        plots.append(load_plot(run.result, run.curves, run.inputs))
    return {
        plot.name: Picture(plot, report.plot_lines.get(plot.name))
        for plot in plots
        if plot is not None
    }
