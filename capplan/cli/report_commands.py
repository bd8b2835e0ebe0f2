"""The command lines of a report: what asks for each part of it again, and draws each plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.cli.command_line import command_line
from capplan.planner.question import Question
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.report import FleetRun, ReportCommand

_OTHER_ENGINES = {"sglang": "sglang", "tensorrt-llm": "trtllm"}


def emitted_forms(result: GpusResult) -> tuple[tuple[str, str], ...]:
    """Formats of `--emit` for the engine of the answer, and what each is."""
    engine = result.served_as.engine.lower() if result.served_as else "vllm"
    shell = next((form for name, form in _OTHER_ENGINES.items() if engine.startswith(name)), "vllm")
    return (
        (shell, "One replica, for a shell"),
        ("plan", "plan.yaml, for capplan simulate and check"),
        ("kubernetes", "Kubernetes (YAML)"),
    )


def roofline_line(
    texts: Mapping[str, Any], served: Question, said: GpusInputs, result: GpusResult
) -> str:
    engine = served.engine
    asked = {
        **_replica(said, result),
        "dtype": engine.dtype,
        "kv_dtype": None if texts.get("kv_dtype") is None else engine.kv_dtype,
        "context": str(served.workload.context_tokens),
        "calibration": texts.get("calibration"),
    }
    return command_line("roofline", asked)


def plot_lines(texts: Mapping[str, Any], roofline: str, run: FleetRun | None) -> dict[str, str]:
    """By the plot's name; `simulate` draws the load below the latencies."""
    given = _given(texts)
    lines = {
        "traffic": command_line("gpus", {**given, "sensitivity": None}),
        "tornado": command_line("gpus", {**given, "sensitivity": True}),
        "roofline": roofline,
    }
    if run is not None:
        lines["latencies"] = run.command
    return {name: f"{line} --plot {name}.svg" for name, line in lines.items()}


def report_commands(
    texts: Mapping[str, Any],
    said: GpusInputs,
    result: GpusResult,
    run: FleetRun | None,
    roofline: str,
) -> tuple[ReportCommand, ...]:
    given = _given(texts)
    found = [
        ReportCommand("this report", command_line("report", given, "--output report.html")),
        ReportCommand("its answer, on a terminal", command_line("gpus", given)),
        ReportCommand("its formulas", command_line("explain gpus", given)),
    ]
    if result.feasible:
        for form, _ in emitted_forms(result):
            line = command_line("gpus", given, f"--emit {form}")
            found.append(ReportCommand(f"what to run: {form}", line))
    if run is not None:
        found.append(ReportCommand("the fleet, simulated", run.command))
    found.append(ReportCommand("the roofline", roofline))
    found.append(ReportCommand("its memory", command_line("kv", _replica(said, result))))
    return tuple(found)


def _given(texts: Mapping[str, Any]) -> dict[str, Any]:
    """`verify` and `cache` are on unless they were switched off."""
    on = {"verify": True, "cache": True}
    return {n: value for n, value in texts.items() if value is not None and on.get(n) != value}


def _replica(said: GpusInputs, result: GpusResult) -> dict[str, str]:
    tp = str(result.tp or said.tp or 1)
    return {"model": said.model, "hardware": result.hardware, "tp": tp}
