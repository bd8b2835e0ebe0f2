"""`capplan gpus`: from option texts to the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.gpus_asked import Asked, GpusOptions
from capplan.cli.gpus_question import ask
from capplan.cli.gpus_said import said_of
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.errors import CapplanError
from capplan.performance.rates import beyond_measured, compute_format, derated_rates
from capplan.planner import question as q
from capplan.planner.gpus import plan_fleet
from capplan.render.screen import Screen
from capplan.results.gpus import GpusInputs, GpusPlan, GpusResult

if TYPE_CHECKING:  # traffic is the simulator's, and plots are drawn where asked
    from capplan.planner.sizing.answer import Answered
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.gpus/1"
SIMULATION_ONLY = (
    "slo_percentile", "slo_goodput", "slo_itl", "arrivals", "seed", "engine", "engine_version",
    "max_num_seqs",
    "availability", "mtbf", "mttr", "pp", "expert_parallel", "dp_attention", "growth", "horizon",
    "sensitivity",
)  # fmt: skip


def answer(
    options: GpusOptions,
    as_json: bool,
    form: str,
    emit: str | None = None,
    plot: str | None = None,
) -> int:
    """Answer, print, plot where asked, and return the exit code.

    With ``emit``, print what to run instead.
    """
    inputs = Inputs()
    if emit is not None:
        if as_json or plot is not None:
            other = "--json" if as_json else "--plot"
            raise CapplanError(f"{other} and --emit are two forms of one answer: say one")
        return _emitted(emit, options, inputs)
    if plot is not None and not _is_simulated(options):
        raise CapplanError(
            "--plot draws what was simulated, and bounds are not",
            hint="leave out --plot, or --no-verify and --replica-tokens-per-s",
        )
    drawing = PlotOption.of(plot, "gpus.svg", as_json=as_json, form=form)
    _, said, result = asked_and_answered(options, inputs)

    def screen() -> Screen:
        from capplan.render.gpus import screen as render

        return drawing.shown(render(result, said, inputs.assumptions), plots)

    def plots() -> list[Plot | None]:
        from capplan.cli.gpus_plots import plots_of  # not every answer's

        return plots_of(options, said, result)

    drawing.save(plots)
    show(SCHEMA, said, inputs.assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE if result.feasible else EXIT_NO


def asked_and_answered(
    options: GpusOptions, inputs: Inputs
) -> tuple[q.Question, GpusInputs, GpusResult]:
    """The question of the accelerator that was chosen, the question as shown, and the answer."""
    asked, chosen, result, _ = answered_with_search(options, inputs)
    return chosen, said_of(asked), result


def answered_with_search(
    options: GpusOptions, inputs: Inputs
) -> tuple[Asked, q.Question, GpusResult, Answered | None]:
    """All that was asked, the question of the accelerator that was chosen, and the answer.

    At last what the simulated search found; None where bounds alone were asked for.
    """
    asked = ask(options, _is_simulated(options), inputs)
    found: Answered | None = None
    if asked.percentile is None:
        result = plan_fleet(asked.questions)
    else:
        from capplan.cli.gpus_sizing import sized  # the simulator is not every answer's

        found = sized(asked, inputs)
        result = found.result
    chosen = next(item for item in asked.questions if item.hardware_id == result.hardware)
    _assume_rates(chosen, result, inputs)
    return asked, chosen, result, found


def _is_simulated(options: GpusOptions) -> bool:
    """A throughput that the user measured stands for itself: there is nothing to simulate.

    Raises CapplanError where an option speaks of the simulation alone.
    """
    if options.verify and options.replica_tokens_per_s is None:
        return True
    for name in SIMULATION_ONLY:
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            other = "--replica-tokens-per-s" if options.verify else "--no-verify"
            raise CapplanError(
                f"{option} says nothing beside {other}: bounds do not simulate",
                hint="leave one of them out",
            )
    return False


def _emitted(form: str, options: GpusOptions, inputs: Inputs) -> int:
    from capplan.cli.emit import emit_answer, emit_format  # plans and manifests, not every answer

    form = emit_format("--emit", form)
    from capplan.cli.gpus_written import written

    asked, chosen, result, _ = answered_with_search(options, inputs)
    return emit_answer(form, as_served(chosen, result), result, asked.model_id, written(asked))


def as_served(question: q.Question, plan: GpusPlan) -> q.Question:
    """The question with the engine's settings that were simulated, where they were."""
    served = plan.served_as
    if served is None:
        return question
    engine = replace(
        question.engine,
        dtype=None if served.dtype == question.model.stored_format else served.dtype,
        kv_dtype=served.kv_dtype,
        tp=plan.tp,
        gpu_memory_utilization=served.gpu_memory_utilization,
        max_num_batched_tokens=served.max_num_batched_tokens,
        enable_prefix_caching=served.enable_prefix_caching,
    )
    return replace(question, engine=engine)


def _assume_rates(chosen: q.Question, plan: GpusPlan, inputs: Inputs) -> None:
    """What the chosen accelerator's file supplied rather than the user."""
    hardware = chosen.hardware
    if chosen.fleet.gpus_per_node is None:
        inputs.assume("GPUs a node", str(hardware.node.gpus), "--gpus-per-node")
    if plan.feasible and chosen.fleet.usd_per_gpu_hour is None:
        source = plan.price_source
        value = f"${plan.usd_per_gpu_hour}/GPU-hour: {source}" if source else "none on file"
        inputs.assume("price", value, "--price")
    model = chosen.model
    weights = chosen.engine.dtype or model.stored_format
    compute = compute_format(hardware, weights, model.activation_dtype)
    rates = chosen.calibration.rates(derated_rates(hardware, plan.tp or 1, compute))
    inputs.assume(
        "achieved rates",
        f"{rates.gemm_fraction[compute]:.0%} of {compute} peak, "
        f"{rates.bandwidth_fraction:.0%} of bandwidth",
        "its file: measured",
    )
    beyond = beyond_measured(rates, chosen.engine.max_num_batched_tokens)
    for note in (*rates.notes, *((beyond,) if beyond else ())):
        inputs.assume("not measured on this accelerator", note, "its file: measured")
    if hardware.visible_memory_is_estimate:
        inputs.assume("memory that a process sees", "estimated", "its file: memory.visible")
