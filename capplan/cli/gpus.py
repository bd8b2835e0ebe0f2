"""`capplan gpus`: from option texts to the answer."""

from __future__ import annotations

from typing import NamedTuple

from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.performance.rates import beyond_measured, compute_format, derated_rates
from capplan.planner import question as q
from capplan.planner.gpus import plan_fleet
from capplan.planner.money import require_prices
from capplan.render.screen import Screen
from capplan.results.gpus import GpusInputs, GpusPlan, GpusResult

SCHEMA = "capplan.gpus/1"


class GpusOptions(NamedTuple):
    qps: str | None
    slo_ttft: str | None
    slo_tpot: str | None
    prompt_tokens: str | None
    output_tokens: str | None
    peak_factor: str | None
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    gpu_memory: str | None
    gpu_memory_utilization: str | None
    reserve: str | None
    block_size: str | None
    max_num_batched_tokens: str | None
    async_scheduling: bool | None
    enable_prefix_caching: bool | None
    replica_tokens_per_s: str | None
    spares: str | None
    gpus_per_node: str | None
    price: str | None
    commitment: str | None
    price_factor: str | None
    idle_power: str | None


def answer(options: GpusOptions, as_json: bool, form: str, emit: str | None = None) -> int:
    """Answer, print, and return the exit code; with ``emit``, print what to run instead."""
    inputs = Inputs()
    if emit is not None:
        if as_json:
            raise CapplanError("--json and --emit are two forms of one answer: say one")
        return _emitted(emit, *_questions(options, inputs))
    _, asked, result = asked_and_answered(options, inputs)

    def screen() -> Screen:
        from capplan.render.gpus import screen as render

        return render(result, asked, inputs.assumptions)

    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE if result.feasible else EXIT_NO


def asked_and_answered(
    options: GpusOptions, inputs: Inputs
) -> tuple[q.Question, GpusInputs, GpusResult]:
    """The question of the accelerator that was chosen, the question as shown, and the answer."""
    questions, model_name = _questions(options, inputs)
    result = plan_fleet(questions)
    _assume_rates(questions, result, inputs)
    chosen = next(item for item in questions if item.hardware_id == result.hardware)
    return chosen, _asked(questions, model_name), result


def _emitted(form: str, questions: list[q.Question], model_name: str) -> int:
    from capplan.cli.emit import emit_answer, emit_format  # plans and manifests, not every answer

    form = emit_format("--emit", form)
    result = plan_fleet(questions)
    chosen = next(item for item in questions if item.hardware_id == result.hardware)
    return emit_answer(form, chosen, result, model_name)


def _questions(options: GpusOptions, inputs: Inputs) -> tuple[list[q.Question], str]:
    """The same question for each accelerator, and the model's name as given."""
    rate = inputs.rate(options.qps, options.peak_factor)
    limits = q.Limits(
        inputs.duration("--slo-ttft", options.slo_ttft, q.DEFAULT_SLO_TTFT_S, "TTFT limit"),
        inputs.duration("--slo-tpot", options.slo_tpot, q.DEFAULT_SLO_TPOT_S, "TPOT limit"),
    )
    workload = q.Workload(
        rate,
        inputs.tokens("--prompt-tokens", options.prompt_tokens, q.DEFAULT_PROMPT_TOKENS, "prompt"),
        inputs.tokens("--output-tokens", options.output_tokens, q.DEFAULT_OUTPUT_TOKENS, "output"),
    )
    model = inputs.model(options.model)
    accelerators = inputs.hardware_list(options.hardware)
    engine = inputs.engine(
        model.spec,
        dtype=options.dtype,
        kv_dtype=options.kv_dtype,
        tp=inputs.tp(options.tp),
        gpu_memory=options.gpu_memory,
        utilization=options.gpu_memory_utilization,
        reserve=options.reserve,
        block_size=options.block_size,
        budget=inputs.tokens(
            "--max-num-batched-tokens",
            options.max_num_batched_tokens,
            q.DEFAULT_MAX_NUM_BATCHED_TOKENS,
            "token budget of a step",
        ),
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
    )
    fleet = _fleet(options, inputs)
    questions = [
        q.Question(model.spec, found.id, found.spec, workload, limits, engine, fleet)
        for found in accelerators
    ]
    if options.commitment is not None:
        require_prices(questions)  # what was asked for by name is not passed over
    return questions, model.id


def _fleet(options: GpusOptions, inputs: Inputs) -> q.FleetSettings:
    given = options.replica_tokens_per_s
    node = options.gpus_per_node
    return q.FleetSettings(
        num_spares=inputs.count(
            "--spares", options.spares, q.DEFAULT_NUM_SPARES, "spare replicas", least=0
        ),
        gpus_per_node=None if node is None else inputs.count("--gpus-per-node", node, 1, None),
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


def _assume_rates(questions: list[q.Question], plan: GpusPlan, inputs: Inputs) -> None:
    """What the chosen accelerator's file supplied rather than the user."""
    chosen = next(item for item in questions if item.hardware_id == plan.hardware)
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
    rates = derated_rates(hardware, plan.tp or 1, compute)
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


def _asked(questions: list[q.Question], model: str) -> GpusInputs:
    first = questions[0]
    engine, fleet, workload = first.engine, first.fleet, first.workload
    return GpusInputs(
        model=model,
        model_name=first.model.name,
        hardware=tuple(item.hardware_id for item in questions),
        arrival_rate_per_s=workload.arrival_rate_per_s,
        prompt_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        slo_ttft_s=first.limits.slo_ttft_s,
        slo_tpot_s=first.limits.slo_tpot_s,
        slo_statistic="mean",
        dtype=engine.dtype or first.model.stored_format,
        kv_dtype=engine.kv_dtype,
        tp=engine.tp,
        gpu_memory_bytes=engine.gpu_memory_bytes,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        reserve_bytes=engine.reserve_bytes,
        block_size=engine.block_size,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        async_scheduling=engine.async_scheduling,
        enable_prefix_caching=engine.enable_prefix_caching,
        num_spare_replicas=fleet.num_spares,
        gpus_per_node=fleet.gpus_per_node,
        usd_per_gpu_hour=fleet.usd_per_gpu_hour,
        price_tier=fleet.price_tier,
        price_factor=fleet.price_factor,
        idle_power_fraction=fleet.idle_power_fraction,
        replica_output_tokens_per_s=fleet.replica_output_tokens_per_s,
    )
