"""From option texts and a plan to the question that is simulated, for every command that does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from capplan import units
from capplan.cli.fleet import FleetOptions, fleet_of
from capplan.cli.inputs import Inputs, checked_name
from capplan.cli.options import picked
from capplan.cli.serving import ServingOptions, assume_serving, replicas_of, serving_of
from capplan.cli.traffic import (
    TrafficOptions,
    fewer,
    folder_of,
    in_a_loop,
    traffic_spec,
)
from capplan.errors import CapplanError
from capplan.planner import question as defaults
from capplan.planner.serving import Serving
from capplan.planner.simulate import SimulateQuestion
from capplan.results.simulate import SimulateInputs
from capplan.simulator.fleet.plan import check_failures
from capplan.simulator.latencies import PERCENTILES
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.traffic import Traffic
from capplan.simulator.yardstick import Limit
from capplan.specs.documents import Document
from capplan.specs.fields import SpecError
from capplan.specs.percentiles import DEFAULT_SLO_PERCENTILE
from capplan.specs.plan import Plan, read_plan
from capplan.specs.plan_variants import variant_named
from capplan.specs.slos import SloLimit, Slos
from capplan.specs.traffic import TrafficSpec

MEASURES = ("ttft", "tpot", "itl", "e2e")


class RunOptions(NamedTuple):
    """What is asked of a run beside what serves and what comes."""

    plan: str | None
    variant: str | None
    replicas: str | None
    slo_ttft: str | None
    slo_tpot: str | None
    slo_itl: str | None
    slo_e2e: str | None
    slo_percentile: str | None
    slo_goodput: str | None
    warmup: str | None
    replications: str | None


@dataclass(frozen=True)
class Asked:
    """The question, and what a screen says of it."""

    question: SimulateQuestion
    spec: TrafficSpec
    inputs: SimulateInputs


def ask(texts: Mapping[str, Any], inputs: Inputs, *, users: int | None = None) -> Asked:
    """`texts` are all options of the command by name, `variant` one of the plan's.

    `users` makes a closed loop of so many where nobody says who comes. Raises CapplanError.
    """
    serving_options = picked(ServingOptions, texts)
    traffic_options = picked(TrafficOptions, texts)
    options = picked(RunOptions, texts)
    plan, document = _plan(options.plan, options.variant)
    spec = traffic_spec(traffic_options, plan, document, inputs)
    if users is not None:
        spec = in_a_loop(spec, users)
    folder = folder_of(options.plan, traffic_options)
    num_replicas = replicas_of(options.replicas, plan, inputs)
    serving = serving_of(serving_options, plan, num_replicas, inputs)
    assume_serving(serving_options, plan, serving, inputs)
    if not serving.is_quick:
        spec = fewer(spec, inputs)
    seed = spec.seed

    @lru_cache(maxsize=1)  # files that it needs are read once for the screen and the first run
    def traffic_of(seed: int) -> Traffic:
        return requests_of(spec, seed, folder)

    traffic = traffic_of(seed)
    inputs.assumptions += traffic.describe()
    limits = _limits(options, plan.slos if plan else None, inputs)
    if any(part.slos for part in spec.classes):
        inputs.assume("limits of classes", "not judged here", "capplan gpus --plan")
    if plan and document:
        _check_failures(plan, num_replicas, document)
    question = SimulateQuestion(
        serving=serving,
        traffic=traffic_of,
        stationary=spec.is_stationary,
        fleet=fleet_of(picked(FleetOptions, texts), plan, num_replicas, inputs),
        limits=limits,
        percentiles=PERCENTILES,
        goodput_fraction=_goodput(options, plan.slos if plan else None, inputs),
        warmup_s=_warmup(options, plan, inputs),
        seed=seed,
        num_replications=_replications(options, plan, inputs),
    )
    asked = _inputs(options.plan, serving_options.calibration, question, spec, traffic)
    assume_rates(serving, inputs)
    return Asked(question, spec, asked)


def _plan(file: str | None, variant: str | None) -> tuple[Plan | None, Document | None]:
    if file is None:
        if variant is not None:
            raise CapplanError(
                "--variant says nothing without --plan",
                hint="--plan FILE, a plan with `variants:`; `capplan examples list` names some",
            )
        return None, None
    plan, document = read_plan(Path(checked_name("--plan", file)))
    if variant is None:
        return plan, document
    chosen = variant_named(variant, plan, document)
    return chosen.plan, chosen.document


def _check_failures(plan: Plan, num_replicas: int, document: Document) -> None:
    try:
        check_failures(plan.failures, num_replicas)
    except SpecError as error:
        section, index, field = error.path
        name = f"{section}[{index}].{field}"
        raise CapplanError(
            f"`{name}` {error}", hint=error.hint, location=document.locate(error.path)
        ) from None


def _limits(options: RunOptions, slos: Slos | None, inputs: Inputs) -> tuple[Limit, ...]:
    """Those of the plan and of options; where neither has any, the usual two."""
    percentile = _percentile(options, slos, inputs)
    found: list[Limit] = []
    for key in MEASURES:
        text = getattr(options, f"slo_{key}")
        planned: SloLimit | None = getattr(slos, key) if slos else None
        if text is not None:
            limit_s = inputs.duration(f"--slo-{key}", text, 0.0, "")
            found.append(Limit(key, limit_s, percentile))
        elif planned is not None:
            own = planned.percentile if options.slo_percentile is None else None
            found.append(Limit(key, planned.limit, own or percentile))
    if found or slos is not None:
        return tuple(found)
    for key, default_s in (
        ("ttft", defaults.DEFAULT_SLO_TTFT_S),
        ("tpot", defaults.DEFAULT_SLO_TPOT_S),
    ):
        inputs.assume(f"{key.upper()} limit", units.format_duration(default_s), f"--slo-{key}")
        found.append(Limit(key, default_s, percentile))
    return tuple(found)


def _percentile(options: RunOptions, slos: Slos | None, inputs: Inputs) -> float:
    text = options.slo_percentile
    if text is not None:
        return inputs.number("--slo-percentile", text.removeprefix("p"), least=1, most=99.999)
    if slos is not None:
        return slos.percentile
    inputs.assume("percentile of the limits", f"P{DEFAULT_SLO_PERCENTILE:g}", "--slo-percentile")
    return DEFAULT_SLO_PERCENTILE


def _goodput(options: RunOptions, slos: Slos | None, inputs: Inputs) -> float | None:
    if options.slo_goodput is not None:
        return inputs.share("--slo-goodput", options.slo_goodput, 0.0, "")
    return slos.goodput if slos else None


def _warmup(options: RunOptions, plan: Plan | None, inputs: Inputs) -> float | None:
    if options.warmup is not None and re.fullmatch(r"0+(\.0+)? ?(ms|s|min|h)?", options.warmup):
        return 0.0
    if options.warmup is not None:
        return inputs.duration("--warmup", options.warmup, 0.0, "")
    return plan.simulation.warmup if plan else None


def _replications(options: RunOptions, plan: Plan | None, inputs: Inputs) -> int:
    if options.replications is not None:
        return inputs.whole("--replications", options.replications, least=1, most=1000)
    return plan.simulation.replications if plan else 1


def _inputs(
    plan: str | None,
    calibration: str | None,
    question: SimulateQuestion,
    spec: TrafficSpec,
    traffic: Traffic,
) -> SimulateInputs:
    serving, config = question.serving, question.serving.config
    deployment = serving.deployment
    engine = deployment.engine
    percentiles = {limit.percentile for limit in question.limits}
    return SimulateInputs(
        model=serving.model_id,
        model_name=deployment.model.name,
        hardware=serving.hardware_id,
        plan=plan,
        engine=engine.profile.name,
        num_replicas=serving.num_replicas,
        tp=deployment.tp,
        pp=engine.pp,
        dp=engine.dp,
        ep=serving.ep,
        traffic=describe_traffic(spec, traffic),
        arrival_rate_per_s=traffic.rate_per_s,
        mean_prompt_tokens=traffic.mean_prompt_tokens,
        mean_output_tokens=traffic.mean_output_tokens,
        num_requests=traffic.num_requests,
        duration_s=traffic.duration_s,
        warmup_s=question.warmup_s,
        seed=question.seed,
        num_replications=question.num_replications,
        dtype=engine.dtype or deployment.model.stored_format,
        kv_dtype=engine.kv_dtype,
        max_num_seqs=config.max_num_seqs,
        max_num_batched_tokens=config.max_num_batched_tokens,
        max_model_len=config.max_model_len,
        block_size=config.block_size,
        num_gpu_blocks=config.num_gpu_blocks,
        enable_prefix_caching=config.enable_prefix_caching,
        enable_chunked_prefill=config.enable_chunked_prefill,
        async_scheduling=config.async_scheduling,
        slo_percentile=percentiles.pop() if len(percentiles) == 1 else None,
        calibration=calibration,
    )


def describe_traffic(spec: TrafficSpec, traffic: Traffic) -> str:
    """One line: `8 req/s, Poisson, 1,024 tokens in, 256 out`."""
    if spec.trace is not None:
        return f"the trace {spec.trace.file}"
    prompt, output = traffic.mean_prompt_tokens, traffic.mean_output_tokens
    lengths = f"{round(prompt):,} tokens in, {round(output):,} out"
    if spec.closed_loop is not None:
        return f"{spec.closed_loop.users:,} users in a closed loop, {lengths}"
    kinds = {part.arrivals.text for part in spec.parts}
    arrivals = kinds.pop() if len(kinds) == 1 else "several classes"
    arrivals = "Poisson" if arrivals == "poisson" else arrivals
    if traffic.rate_per_s is None:
        return f"{arrivals}, {lengths}"
    return f"{units.format_rate(traffic.rate_per_s, digits=3)}, {arrivals}, {lengths}"


def assume_rates(serving: Serving, inputs: Inputs) -> None:
    """What was not measured on this accelerator."""
    for note in serving.rates.notes:
        inputs.assume("not measured on this accelerator", note, "its file: measured")
    if serving.deployment.hardware.visible_memory_is_estimate:
        inputs.assume("memory that a process sees", "estimated", "its file: memory.visible")
