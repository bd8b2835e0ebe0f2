"""The plots of a report, by the place where they stand."""

from __future__ import annotations

from capplan.render.plots.roofline import roofline_plot
from capplan.render.report.page import Picture
from capplan.results.report import Report


def pictures_of(report: Report) -> dict[str, Picture]:
    """Only those that the answer has the figures for."""
    return {"roofline": Picture(roofline_plot([report.roofline]), None)}
