"""`capplan kv`: from option texts to the answer."""

from __future__ import annotations

from typing import NamedTuple

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.planner.kv import KvQuestion, kv_answer
from capplan.planner.lengths import parse_lengths
from capplan.planner.question import DEFAULT_MAX_NUM_BATCHED_TOKENS
from capplan.render.screen import Screen
from capplan.results.kv import KvInputs
from capplan.specs.kv_cache import has_windows
from capplan.specs.model import ModelSpec
from capplan.units import format_tokens

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
    max_model_len: str | None
    max_num_batched_tokens: str | None
    async_scheduling: bool | None
    enable_prefix_caching: bool | None
    lengths: str | None
    static_length: str | None


def answer(options: KvOptions, as_json: bool, form: str) -> int:
    """Answer, print, and return the exit code.

    1 where the user named an accelerator and not one sequence fits it, or asked for a length
    with which the engine would not start. That a request of the model's own context does not
    fit is only said.
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
        max_model_len=result.sizing.max_model_len,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        async_scheduling=engine.async_scheduling,
        enable_prefix_caching=engine.enable_prefix_caching,
        lengths=lengths,
        static_length=question.static_length,
    )

    def screen() -> Screen:
        from capplan.render.kv import screen as render

        return render(result, asked, inputs.assumptions)

    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    refused = engine.max_model_len is not None and not result.sizing.starts
    too_small = options.hardware is not None and not result.num_sequences
    return EXIT_NO if refused or too_small else EXIT_FINE


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
        budget=_token_budget(options, inputs, model.spec),
        max_model_len=_max_model_len(options, inputs, model.spec),
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
    )
    longest = engine.max_model_len or model.spec.max_context_tokens
    default = min(DEFAULT_CONTEXT_TOKENS, longest)
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


def _max_model_len(options: KvOptions, inputs: Inputs, model: ModelSpec) -> int | None:
    """None for the model's context."""
    if options.max_model_len is None:
        context = format_tokens(model.max_context_tokens)
        inputs.assume("longest request", f"the model's {context} tokens", "--max-model-len")
        return None
    return inputs.tokens("--max-model-len", options.max_model_len, 0, "longest request")


def _token_budget(options: KvOptions, inputs: Inputs, model: ModelSpec) -> int:
    """Tokens of a step; they change the pool only where a window keeps them."""
    text = options.max_num_batched_tokens
    if text is None and not has_windows(model):
        return DEFAULT_MAX_NUM_BATCHED_TOKENS
    return inputs.tokens(
        "--max-num-batched-tokens", text, DEFAULT_MAX_NUM_BATCHED_TOKENS, "token budget of a step"
    )
