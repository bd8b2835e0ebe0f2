"""`capplan report`: an answer with all that stands behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capplan.results.assumptions import Assumption
from capplan.results.explanation import Explanation
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.roofline import GpuRoofline
from capplan.results.simulate import Curves, SimulateInputs, SimulateResult
from capplan.results.traffic_curve import TrafficCurve


@dataclass(frozen=True, slots=True)
class FleetRun:
    """The fleet of the answer, simulated once more as `capplan simulate` does."""

    inputs: SimulateInputs
    result: SimulateResult
    curves: Curves
    command: str


@dataclass(frozen=True, slots=True)
class ReportCommand:
    """A command line of ours, and what it shows."""

    purpose: str
    line: str


@dataclass(frozen=True, slots=True)
class ReportText:
    """What is to be run, or written to a file: a command line, a manifest, a plan."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """``left_out`` says what is missing and why: a report is whole without it."""

    question: GpusInputs
    answer: GpusResult
    assumptions: tuple[Assumption, ...]
    explanation: Explanation
    traffic: TrafficCurve | None
    roofline: GpuRoofline
    plot_lines: Mapping[str, str]  # what draws each plot, by its name
    run: FleetRun | None
    launches: tuple[ReportText, ...]
    commands: tuple[ReportCommand, ...]
    left_out: tuple[str, ...]
    version: str
