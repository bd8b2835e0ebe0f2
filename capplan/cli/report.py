"""`capplan report`: the answer of `capplan gpus` and all that stands behind it, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capplan.cli.emit import emitted_text
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.explain import gpus_explained
from capplan.cli.files import write_new
from capplan.cli.gpus import answered_with_search, as_served
from capplan.cli.gpus_asked import Asked, GpusOptions
from capplan.cli.gpus_said import said_of
from capplan.cli.gpus_written import written
from capplan.cli.inputs import Inputs
from capplan.cli.options import picked
from capplan.cli.report_commands import (
    emitted_forms,
    plot_lines,
    report_commands,
    roofline_line,
)
from capplan.cli.report_run import fleet_run, why_not
from capplan.cli.roofline import DEFAULT_BATCHES
from capplan.cli.version import installed_version
from capplan.errors import CapplanError, did_you_mean
from capplan.planner.question import Question
from capplan.planner.roofline import roofline
from capplan.planner.sizing.traffic_curve import traffic_curve
from capplan.render.new_file import check_new_file
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.report import FleetRun, Report, ReportText
from capplan.results.roofline import GpuRoofline

_SUFFIXES = {"html": (".html", ".htm"), "markdown": (".md", ".markdown")}


def answer(texts: Mapping[str, Any], output: str | None, form: str | None) -> int:
    """Answer, write the document, and return the exit code of the answer."""
    chosen = _format(form, output)
    if output is not None:
        check_new_file(
            output, "--output", _SUFFIXES[chosen], hint=f"name it report{_SUFFIXES[chosen][0]}"
        )
    if chosen == "html":
        from capplan.render.report.html import check_extra

        check_extra()
    report = _report(texts)
    text = _written(report, chosen)
    if output is None:
        environment().stdout.write(text)
    else:
        write_new(Path(output), text)
        environment().stderr.write(f"wrote {output}\n")
    return EXIT_FINE if report.answer.feasible else EXIT_NO


def _format(form: str | None, output: str | None) -> str:
    """As asked; else by the file's ending; else HTML."""
    if form is not None and form not in _SUFFIXES:
        hint = did_you_mean(form[:40], [*_SUFFIXES]) or f"one of: {', '.join(_SUFFIXES)}"
        raise CapplanError(f"--format: `{form[:40]}` is not a format", hint=hint)
    if form is None and output is not None and output.lower().endswith(_SUFFIXES["markdown"]):
        return "markdown"
    return form or "html"


def _written(report: Report, form: str) -> str:
    from capplan.render.report.content import page_of
    from capplan.render.report.pictures import pictures_of

    page = page_of(report, pictures_of(report))
    if form == "markdown":
        from capplan.render.report.markdown import markdown

        return markdown(page)
    from capplan.render.report.html import html

    return html(page)


def _report(texts: Mapping[str, Any]) -> Report:
    options, inputs = picked(GpusOptions, texts), Inputs()
    asked, question, result, found = answered_with_search(options, inputs)
    said = said_of(asked)
    served = as_served(question, result)
    left_out: list[str] = []
    run = _run(options, said, result, left_out)
    launches = _launches(served, asked, result, left_out)
    line = roofline_line(texts, served, said, result)
    return Report(
        question=said,
        answer=result,
        assumptions=tuple(inputs.assumptions),
        explanation=gpus_explained(question, result, found),
        traffic=traffic_curve(result, said.arrival_rate_per_s),
        roofline=_roofline(served, result),
        plot_lines=plot_lines(texts, line, run),
        run=run,
        launches=launches,
        commands=report_commands(texts, said, result, run, line),
        left_out=tuple(left_out),
        version=installed_version() or "from a checkout",
    )


def _run(
    options: GpusOptions, said: GpusInputs, result: GpusResult, left_out: list[str]
) -> FleetRun | None:
    reason = why_not(result)
    if reason is None:
        try:
            return fleet_run(options, said, result)
        except CapplanError as error:  # what the search takes and the simulation does not
            reason = error.message
    left_out.append(f"the simulated requests: {reason}")
    return None


def _launches(
    question: Question, asked: Asked, result: GpusResult, left_out: list[str]
) -> tuple[ReportText, ...]:
    """The command line of a server, the manifest, the plan: those that there are words for."""
    found = []
    if result.feasible:
        for form, name in emitted_forms(result):
            try:
                text = emitted_text(form, question, result, asked.model_id, written(asked))
            except CapplanError as error:
                left_out.append(f"{name}: {error.message}")
            else:
                found.append(ReportText(name, text))
    return tuple(found)


def _roofline(question: Question, result: GpusResult) -> GpuRoofline:
    engine = question.engine
    return roofline(
        question.model,
        question.hardware_id,
        question.hardware,
        tp=result.tp or engine.tp or 1,
        dtype=engine.dtype,
        kv_dtype=engine.kv_dtype,
        batches=[int(text) for text in DEFAULT_BATCHES.split(",")],
        contexts=[question.workload.context_tokens],
        calibration=question.calibration,
    )
