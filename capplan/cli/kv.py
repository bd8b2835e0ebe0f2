"""`capplan kv`: from option texts to the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.kv_engine import assume_defaults, engine_of
from capplan.cli.kv_lengths import read_lengths
from capplan.cli.kv_options import KvOptions
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.planner.kv import KvQuestion, kv_answer
from capplan.planner.kv_advice import advise
from capplan.render.screen import Screen
from capplan.results.kv import KvInputs, KvResult

if TYPE_CHECKING:  # only where it is drawn
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.kv/1"
DEFAULT_CONTEXT_TOKENS = 8192
DEFAULT_LENGTHS = "lognormal:1280,0.8"


def answer(options: KvOptions, plot: str | None, as_json: bool, form: str) -> int:
    """Answer, print, plot where asked, and return the exit code.

    1 where the user named an accelerator and not one sequence fits it, or asked for a length
    with which the engine would not start. That a request of the model's own context does not
    fit is only said. With a log, 0: it is the comparison that was asked for.
    """
    inputs = Inputs()
    drawing = PlotOption.of(plot, "blocks.svg", as_json=as_json, form=form)
    _, asked, result = asked_and_answered(options, inputs)

    def screen() -> Screen:
        from capplan.render.kv import screen as render

        return render(result, asked, inputs.assumptions)

    def plots() -> list[Plot | None]:
        from capplan.render.plots.blocks import blocks_plot

        return [blocks_plot(result)]

    drawing.save(plots)
    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE if is_fine(options, result) else EXIT_NO


def is_fine(options: KvOptions, result: KvResult) -> bool:
    """Whether what was named fits; with a log it is the comparison that was asked for."""
    if options.engine_log is not None:
        return True
    refused = options.max_model_len is not None and not result.sizing.starts
    too_small = options.hardware is not None and not result.num_sequences
    return not (refused or too_small)


def asked_and_answered(options: KvOptions, inputs: Inputs) -> tuple[KvQuestion, KvInputs, KvResult]:
    """The question, the question as shown, and its answer."""
    question, given, result = _answer(options, inputs)
    return question, _asked(given, question, result), result


def _answer(options: KvOptions, inputs: Inputs) -> tuple[KvQuestion, KvOptions, KvResult]:
    log = None
    given = options
    if options.engine_log is not None:
        from capplan.cli.kv_log import with_log

        given, log = with_log(options, inputs, options.engine_log)
    model, hardware = inputs.model(given.model), inputs.hardware(given.hardware)
    engine = engine_of(given, inputs, model.spec, log)
    longest = min(engine.max_model_len or model.spec.max_context_tokens, 10**9)
    context = inputs.tokens(
        "--context", given.context, min(DEFAULT_CONTEXT_TOKENS, longest), "context"
    )
    lengths, static = _lengths(given, inputs)
    question = KvQuestion(
        model_id=model.id,
        model=model.spec,
        hardware_id=hardware.id,
        hardware=hardware.spec,
        engine=engine,
        context_tokens=context,
        lengths=lengths,
        static_length=static,
    )
    result = kv_answer(question)
    assume_defaults(given, inputs, question.deployment)
    compared = None
    if log is not None:
        from capplan.planner.kv_log import compare

        compared = compare(log.log, question.deployment)
    return question, given, replace(result, advice=advise(question), log=compared)


def _lengths(options: KvOptions, inputs: Inputs) -> tuple[tuple[int, ...], int | None]:
    if options.lengths is None:
        inputs.assume("request lengths", DEFAULT_LENGTHS, "--lengths")
    static = options.static_length
    if static is None:
        inputs.assume("static allocation", "the longest request", "--static-length")
    return read_lengths(options.lengths or DEFAULT_LENGTHS), (
        None if static is None else inputs.tokens("--static-length", static, 0, "static allocation")
    )


def _asked(options: KvOptions, question: KvQuestion, result: KvResult) -> KvInputs:
    engine, settings = question.engine, question.deployment.settings
    return KvInputs(
        model=question.model_id,
        hardware=question.hardware_id,
        dtype=result.dtype,
        kv_dtype=engine.kv_dtype,
        tp=engine.tp,
        pp=engine.pp,
        dcp=engine.dcp,
        dp_attention=engine.dp,
        engine=engine.profile.engine,
        engine_version=options.engine_version,
        context_tokens=question.context_tokens,
        gpu_memory_bytes=engine.gpu_memory_bytes,
        gpu_memory_utilization=result.memory.memory_share,
        reserve_bytes=engine.reserve_bytes,
        block_size=settings.block_size,
        max_model_len=result.sizing.max_model_len,
        max_num_batched_tokens=result.memory.max_num_batched_tokens,
        max_num_seqs=result.memory.max_num_seqs,
        async_scheduling=settings.async_scheduling,
        enable_prefix_caching=settings.enable_prefix_caching,
        lengths=options.lengths or DEFAULT_LENGTHS,
        static_length=question.static_length,
        engine_log=options.engine_log,
    )
