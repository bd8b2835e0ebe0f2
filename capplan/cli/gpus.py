"""`capplan gpus`: from option texts to the answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.gpus_asked import TOKEN_BUDGET, Asked, GpusOptions
from capplan.cli.gpus_said import said_of
from capplan.cli.inputs import MAX_SECONDS, Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.cli.slos import SloLimit, SloOptions, check_together, common_percentile, limits_of
from capplan.errors import CapplanError
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.performance.rates import beyond_measured, compute_format, derated_rates
from capplan.planner import question as q
from capplan.planner.gpus import plan_fleet
from capplan.planner.money import require_prices
from capplan.render.screen import Screen
from capplan.results.gpus import GpusInputs, GpusPlan, GpusResult

if TYPE_CHECKING:  # traffic is the simulator's, and plots are drawn where asked
    from capplan.planner.sizing.answer import Answered
    from capplan.planner.sizing.demand import Demand
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
    asked, chosen, result = asked_and_chosen(options, inputs)
    return chosen, said_of(asked), result


def asked_and_chosen(options: GpusOptions, inputs: Inputs) -> tuple[Asked, q.Question, GpusResult]:
    """All that was asked, the question of the accelerator that was chosen, and the answer."""
    asked, chosen, result, _ = answered_with_search(options, inputs)
    return asked, chosen, result


def answered_with_search(
    options: GpusOptions, inputs: Inputs
) -> tuple[Asked, q.Question, GpusResult, Answered | None]:
    """The same, and what the simulated search found; None where bounds alone were asked for."""
    asked = _ask(options, _is_simulated(options), inputs)
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

    asked, chosen, result = asked_and_chosen(options, inputs)
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


def _ask(options: GpusOptions, simulated: bool, inputs: Inputs) -> Asked:
    demand = written = None
    planned_limits = False
    if options.plan is not None or options.trace is not None:
        from capplan.cli.gpus_plan import planned  # plans are not every answer's

        given = options
        options, demand, written = planned(options, inputs)
        limits_in = ("slo_ttft", "slo_tpot", "slo_itl", "slo_e2e")
        planned_limits = any(getattr(options, n) != getattr(given, n) for n in limits_in)
    slos = SloOptions(*(getattr(options, name) for name in SloOptions._fields))
    if demand is not None:
        traffic = demand.traffic(1.0, 1000, 0)
        rate = demand.peak_per_s
        prompt = max(1, round(traffic.mean_prompt_tokens))
        output = max(1, round(traffic.mean_output_tokens))
        prompt_text, output_text = str(prompt), str(output)
        own = [part.slos for part in demand.parts if part.slos is not None]
        limits = limits_of(slos, inputs, all_given=planned_limits or bool(own))
    else:
        rate = inputs.rate(options.qps, options.peak_factor)
        limits = limits_of(slos, inputs)
        prompt, prompt_text = _mean_length(
            inputs, "--prompt-tokens", options.prompt_tokens, q.DEFAULT_PROMPT_TOKENS, "prompt"
        )
        output, output_text = _mean_length(
            inputs, "--output-tokens", options.output_tokens, q.DEFAULT_OUTPUT_TOKENS, "output"
        )
    check_together(limits, output)
    workload = q.Workload(rate, prompt, output)
    model = inputs.model(options.model)
    accelerators = inputs.hardware_list(options.hardware)
    engine = inputs.engine(
        model.spec,
        dtype=first(options.dtype, simulated),
        kv_dtype=first(options.kv_dtype, simulated),
        tp=inputs.tp("auto" if _is_list(options.tp, simulated) else options.tp),
        gpu_memory=options.gpu_memory,
        utilization=options.gpu_memory_utilization,
        reserve=options.reserve,
        block_size=options.block_size,
        budget=inputs.tokens(
            "--max-num-batched-tokens",
            first(options.max_num_batched_tokens, simulated),
            q.DEFAULT_MAX_NUM_BATCHED_TOKENS,
            None if simulated else TOKEN_BUDGET,  # a simulation has the engine's own
        ),
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
    )
    fleet = _fleet(options, inputs)
    mean_limits = _mean_limits([*limits, *_of_classes(demand)], output)
    calibrations = _calibrations(options, model.id, [found.id for found in accelerators], inputs)
    questions = [
        q.Question(
            model.spec, found.id, found.spec, workload, mean_limits, engine, fleet,
            calibrations.get(found.id, UNCALIBRATED),
        )
        for found in accelerators
    ]  # fmt: skip
    if options.commitment is not None or options.objective == "cost":
        require_prices(questions)  # what was asked for by name is not passed over
    percentile = common_percentile(slos, limits, inputs) if simulated else None
    return Asked(
        options, questions, model.id, limits, percentile, prompt_text, output_text, demand, written
    )


def _calibrations(
    options: GpusOptions, model_id: str, hardware_ids: list[str], inputs: Inputs
) -> dict[str, Calibration]:
    """By accelerator; bounds know no engine, and take what vLLM's servers taught."""
    if options.calibration is None:
        return {}
    from capplan.cli.calibration import calibrations_of  # not every answer's
    from capplan.specs.engine_catalogue import DEFAULT_ENGINE, load_engine

    engine = load_engine(options.engine or DEFAULT_ENGINE, options.engine_version).engine
    return calibrations_of(inputs, options.calibration, model_id, hardware_ids, engine)


def _is_list(text: str | None, simulated: bool) -> bool:
    return simulated and text is not None and "," in text


def first(text: str | None, simulated: bool) -> str | None:
    """Of several values the first, for the bounds; without a search there is one."""
    return text.split(",")[0].strip() if text is not None and simulated else text


def _mean_length(
    inputs: Inputs, option: str, text: str | None, default: int, what: str
) -> tuple[int, str]:
    """The mean in whole tokens, and the lengths as they were given."""
    if text is None or not re.search(r"[:,@]", text):
        tokens = inputs.tokens(option, text, default, what)
        return tokens, str(tokens)
    from capplan.cli.gpus_sizing import mean_length  # distributions and files are the simulator's

    return mean_length(option, text), text


def _of_classes(demand: Demand | None) -> list[SloLimit]:
    """What is promised to single classes."""
    if demand is None:
        return []
    from capplan.planner.sizing.limits import class_limits

    return [
        SloLimit(each.limit.key, each.limit.limit_s, each.limit.percentile)
        for each in class_limits(demand)
    ]


def _mean_limits(limits: list[SloLimit], output_tokens: int) -> q.Limits:
    """For the bounds; a limit on the whole answer alone leaves its parts as much as it can."""
    by_key: dict[str, float] = {}
    for limit in limits:
        # Steps are shared by all classes, prompts are a class's own.
        best = min if limit.key == "tpot" else max
        by_key[limit.key] = best(by_key.get(limit.key, limit.limit_s), limit.limit_s)
    whole_s = by_key.get("e2e", MAX_SECONDS)
    return q.Limits(
        by_key.get("ttft", whole_s), by_key.get("tpot", whole_s / max(1, output_tokens - 1))
    )


def _fleet(options: GpusOptions, inputs: Inputs) -> q.FleetSettings:
    given = options.replica_tokens_per_s
    if options.availability is not None and options.spares is not None:
        raise CapplanError("--spares says nothing beside --availability, which finds them")
    return q.FleetSettings(
        **_reliability(options, inputs),
        num_spares=inputs.count(
            "--spares",
            options.spares,
            q.DEFAULT_NUM_SPARES,
            None if options.availability else "spare replicas",
            least=0,
        ),
        gpus_per_node=inputs.given_count("--gpus-per-node", options.gpus_per_node),
        usd_per_gpu_hour=inputs.price(options.price),
        price_tier=inputs.price_tier(options.commitment, options.price),
        price_factor=1.0
        if options.price_factor is None
        else inputs.number("--price-factor", options.price_factor, least=0.001, most=10.0),
        idle_power_fraction=inputs.share(
            "--idle-power",
            options.idle_power,
            q.DEFAULT_IDLE_POWER_FRACTION,
            "power of an idle GPU, of TDP",
        ),
        replica_output_tokens_per_s=None
        if given is None
        else inputs.number("--replica-tokens-per-s", given, least=1e-3, most=1e9),
    )


def _reliability(options: GpusOptions, inputs: Inputs) -> dict[str, Any]:
    """What was given of how often replicas fail."""
    found: dict[str, Any] = {}
    if options.availability is not None:
        share = inputs.share("--availability", options.availability, 0.0, "")
        if share >= 1:
            raise CapplanError("--availability: nothing is up all the time", hint="write 99.9%")
        found["availability"] = share
    for name, text in (("mtbf", options.mtbf), ("mttr", options.mttr)):
        if text is not None:
            found[f"{name}_s"] = inputs.long_duration(f"--{name}", text)
    return found


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
