"""One plot of each kind, from the commands that draw them; the tornado of made-up numbers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT

from capplan.cli.environment import Environment, running_in
from capplan.cli.gpus import asked_and_answered
from capplan.cli.gpus_asked import GpusOptions
from capplan.cli.inputs import Inputs
from capplan.cli.run import run
from capplan.planner.sizing.traffic_curve import traffic_curve
from capplan.render.plots import files
from capplan.render.plots.chart import Plot
from capplan.render.plots.tornado import tornado_plot
from capplan.render.plots.traffic import traffic_plot
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.sizing import Month, Variation

PLAN = ROOT / "capplan" / "examples" / "head-of-line.yaml"
QUIET = "--hardware h100-sxm-80gb --qps 6 --num-requests 1200"
LINES = {
    "roofline": "roofline --hardware h100-sxm-80gb",
    "rooflines": "roofline --hardware h100-sxm-80gb,a100-sxm-80gb,l4",
    "pareto": "pareto --hardware h100-sxm-80gb --values 8,32,64,128 --num-requests 1200",
    "latencies": f"simulate {QUIET}",
    "load": f"simulate {QUIET}",
    "saturated": "simulate --qps 40 --num-requests 300",
    "blocks": "kv",
    "schedules": f"simulate --plan {PLAN} --compare-schedulers",
}
VARIATIONS = (
    Variation("traffic", "traffic", "-20%", 5, 16, None),
    Variation("traffic", "traffic", "+20%", 8, 16, None),
    Variation("model", "the model is pessimistic", "x 1.20", 6, 16, None),
    Variation("model", "the model is optimistic", "x 0.50", 13, 24, None),
    Variation("burstiness", "CV of the gaps", "1", 7, 16, None),
    Variation("burstiness", "CV of the gaps", "2", 8, 16, None),
    Variation("burstiness", "CV of the gaps", "3", 10, 16, None),
    Variation("prompt", "prompt length", "+20%", None, None, None),
)


@cache
def sample(name: str) -> Plot:
    if name in ("traffic", "growth", "tornado"):
        return _of_gpus(name)
    plots = _drawn_by(LINES[name])
    return plots[1] if name == "load" else plots[0]


NAMES = (*LINES, "traffic", "growth", "tornado")


@cache
def _drawn_by(line: str) -> tuple[Plot, ...]:
    """What a command would write."""
    found: list[Plot] = []

    def keep(plots: Sequence[Plot], _path: Path) -> None:
        found.extend(plots)

    env = Environment(io.StringIO(), io.StringIO(), 80, is_terminal=False, colour=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "write", keep)
        assert run([*line.split(), "--plot", "never-written.svg"], env) in (0, 1)
    return tuple(found)


@cache
def sized() -> tuple[GpusInputs, GpusResult]:
    """`capplan gpus --hardware h100-sxm-80gb --growth 10%/month`."""
    texts: dict[str, Any] = dict.fromkeys(GpusOptions._fields)
    texts |= {"hardware": "h100-sxm-80gb", "growth": "10%/month", "verify": True, "cache": True}
    env = Environment(io.StringIO(), io.StringIO(), 80, is_terminal=False, colour=False)
    with running_in(env):
        _, said, result = asked_and_answered(GpusOptions(**texts), Inputs())
    return said, result


def months_of(result: GpusResult) -> tuple[Month, ...]:
    assert result.sizing is not None
    return result.sizing.months


def _of_gpus(name: str) -> Plot:
    said, result = sized()
    assert result.sizing is not None
    if name == "tornado":
        changed = replace(result.sizing, variations=VARIATIONS)
        plot = tornado_plot(replace(result, num_gpus=7, sizing=changed), said)
    else:
        months = result.sizing.months if name == "growth" else ()
        changed = replace(result.sizing, months=months)
        own = replace(result, sizing=changed)
        plot = traffic_plot(own, said, traffic_curve(own, said.arrival_rate_per_s))
    assert plot is not None
    return plot
