"""What `capplan gpus --plot` draws."""

from __future__ import annotations

from capplan.cli.gpus_asked import GpusOptions
from capplan.planner.sizing.traffic_curve import traffic_curve
from capplan.render.plots.chart import Plot
from capplan.render.plots.tornado import tornado_plot
from capplan.render.plots.traffic import traffic_plot
from capplan.results.gpus import GpusInputs, GpusResult


def plots_of(options: GpusOptions, said: GpusInputs, result: GpusResult) -> list[Plot | None]:
    """With --sensitivity the tornado, with --growth or neither GPUs against traffic."""
    found: list[Plot | None] = []
    if options.growth is not None or not options.sensitivity:
        curve = traffic_curve(result, said.arrival_rate_per_s)
        found.append(traffic_plot(result, said, curve))
    if options.sensitivity:
        found.append(tornado_plot(result, said))
    return found
