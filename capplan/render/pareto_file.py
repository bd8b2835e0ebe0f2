"""Throughput against latency as a PNG or SVG file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capplan.render.pareto import latency_name, sentence, value_name
from capplan.render.plot_file import write_figure
from capplan.results.pareto import ParetoInputs, ParetoResult

# Okabe-Ito: told apart with any colour vision.
FRONTIER, BEATEN, KNEE = "#0072B2", "0.6", "#D55E00"


def write(result: ParetoResult, inputs: ParetoInputs, path: Path) -> None:
    """Draw to ``path``; CapplanError where that cannot be."""
    write_figure(path, lambda axes: _draw(axes, result, inputs))


def _draw(axes: Any, result: ParetoResult, inputs: ParetoInputs) -> None:
    known = [
        (point, getattr(point, f"{inputs.latency}_s"))
        for point in result.points
        if getattr(point, f"{inputs.latency}_s")
    ]
    on = sorted((p.output_tokens_per_s_per_gpu, y * 1e3) for p, y in known if p.on_frontier)
    axes.plot([x for x, _ in on], [y for _, y in on], "-", color=FRONTIER, zorder=2)
    for point, latency in known:
        is_knee = result.knee is not None and point.value == result.knee.value
        colour = KNEE if is_knee else FRONTIER if point.on_frontier else BEATEN
        x, y = point.output_tokens_per_s_per_gpu, latency * 1e3
        axes.plot(
            [x],
            [y],
            "D" if is_knee else "o",
            color=colour,
            markersize=9 if is_knee else 6,
            zorder=3,
        )
        text = value_name(point.value) + (" (knee)" if is_knee else "")
        axes.annotate(
            text, (x, y), textcoords="offset points", xytext=(-7, 6), fontsize=9, ha="right",
            color=colour if is_knee else "0.2",
        )  # fmt: skip
    axes.set(
        yscale="log",
        xlim=(0, None),
        xlabel="output tokens per second and GPU",
        ylabel=f"{latency_name(inputs)} (ms)",
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:,.10g}" if _few(known) else "")
    title = f"{inputs.simulation.model_name} on {inputs.simulation.hardware} by {inputs.sweep}"
    if result.knee is not None:
        title += f"\n{sentence(result.knee, inputs)}"
    axes.set_title(title, parse_math=False, fontsize=11)
    axes.set_axisbelow(True)
    axes.grid(visible=True, color="0.92")


def _few(known: list[tuple[Any, float]]) -> bool:
    """Less than a decade: minor ticks need their numbers."""
    latencies = [latency for _, latency in known]
    return max(latencies) < 12 * min(latencies)
