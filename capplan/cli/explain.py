"""`capplan explain COMMAND ...`: the same options as the command, its answer explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.options import picked
from capplan.errors import CapplanError, did_you_mean
from capplan.render import explain as render
from capplan.results.assumptions import Assumption
from capplan.results.explanation import Explanation

if TYPE_CHECKING:  # each command has its own
    from capplan.planner.question import Question
    from capplan.planner.sizing.answer import Answered
    from capplan.results.gpus import GpusResult

SCHEMA = "capplan.explanation/1"
FORMATS = ("text", "markdown")


def explain(command: str, texts: Mapping[str, Any], form: str | None, as_json: bool) -> int:
    """Answer as the command would, and print how; its exit code too."""
    chosen = form or "text"
    if chosen not in FORMATS:
        hint = did_you_mean(chosen[:40], FORMATS) or f"one of: {', '.join(FORMATS)}"
        raise CapplanError(f"--format: `{chosen[:40]}` is not a format", hint=hint)
    found, inputs, assumptions, fine = _ANSWERS[command](texts)
    env = environment()
    if as_json:
        from capplan.render import json_output

        env.stdout.write(json_output.document(SCHEMA, inputs, assumptions, found) + "\n")
    elif chosen == "markdown":
        env.stdout.write(render.markdown(found, assumptions))
    else:
        env.stdout.write(render.text(found, assumptions, env.width))
    return EXIT_FINE if fine else EXIT_NO


Answer = tuple[Explanation, Any, list[Assumption], bool]


def _gpus(texts: Mapping[str, Any]) -> Answer:
    from capplan.cli.gpus import answered_with_search
    from capplan.cli.gpus_asked import GpusOptions
    from capplan.cli.gpus_said import said_of

    inputs = Inputs()
    options = picked(GpusOptions, texts)
    asked, question, result, found = answered_with_search(options, inputs)
    explanation = gpus_explained(question, result, found)
    return explanation, said_of(asked), inputs.assumptions, result.feasible


def gpus_explained(question: Question, result: GpusResult, found: Answered | None) -> Explanation:
    """The run that produced the answer where one did, else the bounds."""
    if found is None or found.best is None:
        from capplan.planner.explain.gpus import explain_gpus

        return explain_gpus(question, result)
    from capplan.planner.explain.sizing import explain_sized  # the simulator's

    return explain_sized(found.result, found.best, found.aims)


def _roofline(texts: Mapping[str, Any]) -> Answer:
    from capplan.cli.roofline import RooflineOptions, asked_and_answered
    from capplan.planner.explain.roofline import explain_roofline

    inputs = Inputs()
    options = picked(RooflineOptions, texts)
    asked, result = asked_and_answered(options, inputs)
    return explain_roofline(result), asked, inputs.assumptions, True


def _kv(texts: Mapping[str, Any]) -> Answer:
    from capplan.cli.kv import asked_and_answered, is_fine
    from capplan.cli.kv_options import KvOptions
    from capplan.planner.explain.kv import explain_kv

    inputs = Inputs()
    options = picked(KvOptions, texts)
    question, asked, result = asked_and_answered(options, inputs)
    return explain_kv(question, result), asked, inputs.assumptions, is_fine(options, result)


def _simulate(texts: Mapping[str, Any]) -> Answer:
    from capplan.cli.progress import Progress
    from capplan.cli.simulation import ask
    from capplan.planner.explain.simulate import explain_simulate
    from capplan.planner.simulate import simulate_plan

    inputs = Inputs()
    asked = ask(texts, inputs)
    with Progress("simulating") as progress:
        found = simulate_plan(asked.question, progress)
    return (
        explain_simulate(asked.inputs, found.result, asked.question.serving),
        asked.inputs,
        inputs.assumptions,
        found.result.feasible,
    )


_ANSWERS = {"gpus": _gpus, "roofline": _roofline, "kv": _kv, "simulate": _simulate}
COMMANDS = tuple(_ANSWERS)
