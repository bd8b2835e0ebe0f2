"""`capplan emit PLAN.yaml`, and `capplan gpus --emit`: what to run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from capplan import units
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import checked_name
from capplan.errors import CapplanError, QuantityError, did_you_mean, one_line
from capplan.planner.emit.launch import READ_BYTES_PER_S, launch_of
from capplan.planner.emit.names import Names
from capplan.planner.emit.plan_file import AskedFor, plan_mapping, plan_of
from capplan.planner.question import Question
from capplan.render.emit.formats import launch_text
from capplan.render.emit.yaml_text import document
from capplan.results.gpus import GpusPlan
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.plan import Plan, read_plan
from capplan.specs.plan_variants import variant_named

FORMATS = ("vllm", "sglang", "trtllm", "kubernetes", "helm", "kserve", "compose", "plan")
# Formats that name an engine; the others take the plan's.
_SCHEMA = "yaml-language-server: $schema=plan.schema.json"  # `capplan schema plan` prints it
_ENGINE_OF = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm", "helm": "vllm"}


def emit_format(option: str, text: str) -> str:
    """One of FORMATS; raises CapplanError with the nearest."""
    if text in FORMATS:
        return text
    hint = did_you_mean(text[:40], FORMATS) or f"one of: {', '.join(FORMATS)}"
    raise CapplanError(f"{option}: `{text[:40]}` is not a format", hint=hint)


def emit_answer(
    form: str, question: Question, answer: GpusPlan, model: str, asked: AskedFor
) -> int:
    """Print how the answer of `capplan gpus` is run; exit code 1, and nothing, where none is."""
    env = environment()
    if not answer.feasible:
        env.stderr.write(f"no plan to emit: no number of {answer.hardware} is enough\n")
        return EXIT_NO
    env.stdout.write(emitted_text(form, question, answer, model, asked))
    return EXIT_FINE


def emitted_text(
    form: str, question: Question, answer: GpusPlan, model: str, asked: AskedFor
) -> str:
    """How a feasible answer is run; raises CapplanError where the format has no words for it."""
    mapping = plan_mapping(question, answer, model, asked, engine=_ENGINE_OF.get(form))
    if form == "plan":
        return document(mapping, [_SCHEMA, *_plan_notes(question, answer)])
    names = Names(model, answer.hardware)
    launch = launch_of(plan_of(mapping), question.model, question.hardware, names)
    return launch_text(form, launch)


def _plan_notes(question: Question, answer: GpusPlan) -> list[str]:
    text = "By `capplan gpus --emit plan`: found and proved by simulation."
    if answer.served_as is None:
        text = (
            "By `capplan gpus --emit plan`: lengths and limits were planned as means. "
            "`capplan simulate --plan FILE` holds percentiles against them."
        )
    notes = [text]
    if question.engine.gpu_memory_bytes is not None:
        notes.append("Planned for a GPU of other memory (--gpu-memory), which a plan does not say.")
    return notes


def answer(
    file: str,
    form: str | None,
    variant: str | None,
    repository: str | None,
    read_rate: str | None,
) -> int:
    """Print how a plan is run."""
    chosen = emit_format("--format", form or "kubernetes")
    plan, data = _plan(file, variant)
    if chosen == "plan":
        environment().stdout.write(document(data))
        return EXIT_FINE
    model, hardware = load_model(plan.model), load_hardware(plan.hardware)
    # A repository's name in the plan is what is to be served.
    own = plan.model if "/" in plan.model and model.id != plan.model else None
    launch = launch_of(
        plan,
        model.spec,
        hardware.spec,
        Names(model.id, hardware.id, _repository(repository) or own),
        engine=_ENGINE_OF.get(chosen),
        read_bytes_per_s=_rate(read_rate),
    )
    environment().stdout.write(launch_text(chosen, launch))
    return EXIT_FINE


def _plan(file: str, variant: str | None) -> tuple[Plan, dict[str, Any]]:
    plan, found = read_plan(Path(checked_name("PLAN", file)))
    if variant is not None:
        one = variant_named(variant, plan, found)
        plan, found = one.plan, one.document
    return plan, {key: value for key, value in found.data.items() if key != "variants"}


def _repository(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[\w./~@:+-]{1,400}", text, re.ASCII):
        raise CapplanError(
            f"--repository: `{one_line(text, 40)}` is no repository and no path",
            hint="write it like meta-llama/Llama-3.1-8B-Instruct",
        )
    return text


def _rate(text: str | None) -> float:
    if text is None:
        return READ_BYTES_PER_S
    try:
        return units.parse_bytes_per_s(text, positive=True)
    except QuantityError as error:
        raise CapplanError(f"--read-rate: {error.message}", hint=error.hint) from None
