"""The questions of `capplan gpus` from option texts: one for each accelerator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from capplan.cli.gpus_asked import TOKEN_BUDGET, Asked, GpusOptions
from capplan.cli.inputs import MAX_SECONDS, Inputs
from capplan.cli.slos import SloLimit, SloOptions, check_together, common_percentile, limits_of
from capplan.errors import CapplanError
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.planner import question as q
from capplan.planner.money import require_prices

if TYPE_CHECKING:  # traffic is the simulator's
    from capplan.planner.sizing.demand import Demand


def ask(options: GpusOptions, simulated: bool, inputs: Inputs) -> Asked:
    """Each accelerator's question, and what the search takes beside them where it simulates."""
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
        dtype=_first(options.dtype, simulated),
        kv_dtype=_first(options.kv_dtype, simulated),
        tp=inputs.tp("auto" if _is_list(options.tp, simulated) else options.tp),
        gpu_memory=options.gpu_memory,
        utilization=options.gpu_memory_utilization,
        reserve=options.reserve,
        block_size=options.block_size,
        budget=inputs.tokens(
            "--max-num-batched-tokens",
            _first(options.max_num_batched_tokens, simulated),
            q.DEFAULT_MAX_NUM_BATCHED_TOKENS,
            None if simulated else TOKEN_BUDGET,  # a simulation has the engine's own
        ),
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
        bounds_beside=simulated,
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


def _first(text: str | None, simulated: bool) -> str | None:
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
        raise CapplanError(
            "--spares says nothing beside --availability, which finds them",
            hint="leave one of the two out",
        )
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
