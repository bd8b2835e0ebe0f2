"""A simulation as a PNG or SVG file: two distributions, and the state over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capplan.render.plot_file import write_figure
from capplan.render.simulate import deployment
from capplan.results.simulate import Curves, SimulateInputs, SimulateResult

# Okabe-Ito: told apart with any colour vision.
BLUE, ORANGE, GREEN, LIMIT = "#0072B2", "#E69F00", "#009E73", "#D55E00"


def write(result: SimulateResult, curves: Curves, inputs: SimulateInputs, path: Path) -> None:
    """Draw to ``path``; CapplanError where that cannot be."""
    write_figure(path, lambda axes: _draw(axes, result, curves, inputs))


def _draw(axes: Any, result: SimulateResult, curves: Curves, inputs: SimulateInputs) -> None:
    figure = axes.figure
    figure.clear()
    (ttft, itl), (kv, queue) = figure.subplots(2, 2)
    distributions = dict(curves.distributions)
    _distribution(ttft, distributions["TTFT"], "TTFT", result)
    _distribution(itl, distributions["ITL"], "ITL", result)
    times = [point.time_s for point in curves.series]
    kv.plot(times, [100 * point.kv_used_fraction for point in curves.series], color=GREEN)
    kv.set(ylabel="KV blocks in use (%)", xlabel="time (s)", ylim=(0, 103))
    queue.plot(times, [p.num_running for p in curves.series], color=BLUE, label="running")
    queue.plot(times, [p.num_waiting for p in curves.series], color=ORANGE, label="waiting")
    queue.set(ylabel="requests", xlabel="time (s)", ylim=(0, None))
    for over_time in (kv, queue):
        over_time.set_xlim(0, times[-1] if times else 1)
        over_time.axvline(curves.last_arrival_s, color="0.5", linestyle=":", linewidth=1)
        if curves.warmup_s:
            over_time.axvspan(0, curves.warmup_s, color="0.93", label="warm-up")
    queue.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    queue.legend(loc="best", frameon=False, fontsize=9)
    for each in (ttft, itl, kv, queue):
        each.set_axisbelow(True)
        each.grid(visible=True, color="0.92")
        each.tick_params(labelsize=9)
    verdict = {"saturated": "saturated", "meets": "every limit holds"}.get(result.verdict)
    title = f"{inputs.model_name} on {deployment(inputs)}: {verdict or result.verdict}"
    figure.suptitle(f"{title}\n{inputs.traffic}", fontsize=11, parse_math=False)


def _distribution(
    axes: Any, curve: tuple[tuple[float, float], ...], name: str, result: SimulateResult
) -> None:
    """The share of samples above each value: the tail is what limits are about."""
    points = [(1e3 * value, 1 - share) for value, share in curve if share < 1 and value > 0]
    if points:
        axes.plot([x for x, _ in points], [y for _, y in points], color=BLUE)
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 1.05))
    for level in result.service_levels:
        if level.name == name:
            axes.axvline(1e3 * level.limit_s, color=LIMIT, linestyle="--", linewidth=1)
            axes.axhline(1 - level.percentile / 100, color=LIMIT, linestyle="--", linewidth=1)
            mark = {True: "met", False: "missed", None: "open"}[level.met]
            axes.plot([], [], color=LIMIT, linestyle="--", linewidth=1,
                      label=f"limit at P{level.percentile:g}: {mark}")  # fmt: skip
            axes.legend(loc="lower left", frameon=False, fontsize=9)
    if points:
        _label_log(axes)  # now that the limit has widened the axis
    kind = "requests" if name == "TTFT" else "gaps"
    axes.set(xlabel=f"{name} (ms)", ylabel=f"share of {kind} above")


def _label_log(axes: Any) -> None:
    """Plain numbers instead of powers of ten."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    low, high = axes.get_xlim()
    if high < 30 * low:
        axes.xaxis.set_minor_formatter(
            lambda value, _: f"{value:,.10g}" if f"{value:e}"[0] in "25" else ""
        )
        axes.tick_params(axis="x", which="minor", labelsize=8)
    else:
        axes.xaxis.set_minor_formatter(lambda _value, _: "")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
