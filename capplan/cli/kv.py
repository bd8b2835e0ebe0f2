"""`capplan kv`: from option texts to the answer."""

from __future__ import annotations

from typing import NamedTuple

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.planner.kv import KvQuestion, kv_answer
from capplan.planner.lengths import parse_lengths
from capplan.render.screen import Screen
from capplan.results.kv import KvInputs

SCHEMA = "capplan.kv/1"
DEFAULT_CONTEXT_TOKENS = 8192
DEFAULT_LENGTHS = "lognormal:1280,0.8"


class KvOptions(NamedTuple):
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    context: str | None
    gpu_memory: str | None
    gpu_memory_utilization: str | None
    reserve: str | None
    block_size: str | None
    lengths: str | None
    static_length: str | None


def answer(options: KvOptions, as_json: bool, form: str) -> int:
    """Answer, print, and return the exit code.

    1 where the user named an accelerator and not one sequence fits it.
    """
    inputs = Inputs()
    question, lengths = _question(options, inputs)
    result = kv_answer(question)
    engine = question.engine
    asked = KvInputs(
        model=question.model_id,
        hardware=question.hardware_id,
        dtype=result.dtype,
        kv_dtype=engine.kv_dtype,
        tp=engine.tp,
        context_tokens=question.context_tokens,
        gpu_memory_bytes=engine.gpu_memory_bytes,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        reserve_bytes=engine.reserve_bytes,
        block_size=engine.block_size,
        lengths=lengths,
        static_length=question.static_length,
    )

    def screen() -> Screen:
        from capplan.render.kv import screen as render

        return render(result, asked, inputs.assumptions)

    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    asked_to_fit = options.hardware is not None
    return EXIT_NO if asked_to_fit and not result.num_sequences else EXIT_FINE


def _question(options: KvOptions, inputs: Inputs) -> tuple[KvQuestion, str]:
    model, hardware = inputs.model(options.model), inputs.hardware(options.hardware)
    tp = None if options.tp is None else inputs.count("--tp", options.tp, 1, None)
    if tp is None:
        inputs.assume("tensor parallelism", "1 (the table shows others)", "--tp")
    engine = inputs.engine(
        model.spec,
        dtype=options.dtype,
        kv_dtype=options.kv_dtype,
        tp=tp,
        gpu_memory=options.gpu_memory,
        utilization=options.gpu_memory_utilization,
        reserve=options.reserve,
        block_size=options.block_size,
    )
    default = min(DEFAULT_CONTEXT_TOKENS, model.spec.max_context_tokens)
    context = inputs.tokens("--context", options.context, default, "context")
    lengths = options.lengths
    if lengths is None:
        lengths = DEFAULT_LENGTHS
        inputs.assume("request lengths", lengths, "--lengths")
    static = options.static_length
    if static is None:
        inputs.assume("static allocation", "the longest request", "--static-length")
    return KvQuestion(
        model_id=model.id,
        model=model.spec,
        hardware_id=hardware.id,
        hardware=hardware.spec,
        engine=engine,
        context_tokens=context,
        lengths=parse_lengths(lengths),
        static_length=None
        if static is None
        else inputs.tokens("--static-length", static, 0, "static allocation"),
    ), lengths
