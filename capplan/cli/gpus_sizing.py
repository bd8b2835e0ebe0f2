"""The simulated part of `capplan gpus`: from its options to the search and its proof."""

from __future__ import annotations

from pathlib import Path

import capplan
from capplan import units
from capplan.cli.cache import cache_folder
from capplan.cli.gpus_asked import TOKEN_BUDGET, Asked, GpusOptions
from capplan.cli.gpus_space import growth_of, space_of
from capplan.cli.inputs import Inputs
from capplan.cli.progress import Progress
from capplan.cli.serving import ONE_BATCH, profile_of
from capplan.cli.traffic import checked
from capplan.errors import CapplanError, did_you_mean
from capplan.performance.kv_engine import KvEngine
from capplan.planner.sizing.answer import Answered, Extras, Sought, sized_fleet
from capplan.planner.sizing.demand import Demand
from capplan.planner.sizing.limits import ClassLimit, Promise, class_limits
from capplan.planner.sizing.objectives import OBJECTIVES, Objective
from capplan.planner.sizing.search import Search
from capplan.planner.sizing.store import NoPoints, PointFiles, Points, version_of
from capplan.results.gpus import GpusResult
from capplan.simulator.traffic.drawn import resolved
from capplan.simulator.yardstick import Limit
from capplan.specs.engine_catalogue import version_within
from capplan.specs.rates import ConstantRate


def mean_length(option: str, text: str) -> int:
    """Whole tokens; raises CapplanError for what is no distribution."""
    field = "prompt" if option == "--prompt-tokens" else "output"
    spec = checked({field: text}, field)
    lengths = resolved(getattr(spec, field), 1, Path())
    return max(1, round(lengths.mean_tokens))


def sized(asked: Asked, inputs: Inputs) -> Answered:
    """The answer that a simulation found and proved; raises CapplanError for bad input."""
    options = asked.options
    objective = _objective(options.objective)
    demand = _demand(asked, inputs)
    sought = _sought(asked, inputs)
    e2e = [limit.limit_s for limit in asked.limits if limit.key == "e2e"]
    with Progress("sizing: kinds of replica") as progress:
        answered = sized_fleet(
            asked.questions,
            Sought(
                asked.model_id,
                sought,
                space_of(asked),
                slo_e2e_s=e2e[0] if e2e else None,
                extras=Extras(
                    bool(options.sensitivity), growth_of(options.growth, options.horizon)
                ),
            ),
            Search(
                demand,
                _promise(asked, inputs),
                objective=objective,
                seed=_seed(options, inputs),
                points=points(options.cache),
                progress=progress,
            ),
        )
    _assume_engine(asked, answered.result, inputs)
    _assume_course(demand, answered.result, inputs)
    return answered


def _objective(text: str | None) -> Objective:
    if text is None:
        return "cost"
    for known in OBJECTIVES:
        if text == known:
            return known  # type: ignore[no-any-return]
    hint = did_you_mean(text[:40], OBJECTIVES) or f"one of: {', '.join(OBJECTIVES)}"
    raise CapplanError(f"--objective: `{text[:40]}` is not an objective", hint=hint)


def _demand(asked: Asked, inputs: Inputs) -> Demand:
    if asked.demand is not None:
        inputs.assumptions += asked.demand.describe()
        return asked.demand
    values = {"prompt": asked.prompt, "output": asked.output}
    if asked.options.arrivals is None:
        inputs.assume("arrivals", "Poisson", "--arrivals")
    else:
        values["arrivals"] = asked.options.arrivals
    spec = checked(values, *values)
    rate = asked.questions[0].workload.arrival_rate_per_s
    return Demand(
        spec.model_copy(update={"rate": ConstantRate.model_construct(kind="constant", rate=rate)})
    )


def _promise(asked: Asked, inputs: Inputs) -> Promise:
    assert asked.percentile is not None
    goodput = asked.options.slo_goodput
    has_gaps = asked.questions[0].workload.output_tokens > 1  # between tokens
    whole = tuple(
        ClassLimit(Limit(one.key, one.limit_s, one.percentile or asked.percentile))
        for one in asked.limits
        if has_gaps or one.key not in ("tpot", "itl")
    )
    own = class_limits(asked.demand) if asked.demand is not None else ()
    return Promise(
        (*whole, *own),
        None if goodput is None else inputs.share("--slo-goodput", goodput, 0.0, ""),
    )


def _sought(asked: Asked, inputs: Inputs) -> KvEngine:
    """The engine with what was given; the rest is its own default."""
    options = asked.options
    profile = profile_of(options.engine, options.engine_version, inputs)
    engine = asked.questions[0].engine
    return KvEngine(
        profile=profile,
        version=version_within(profile, options.engine_version),
        dtype=engine.dtype,
        kv_dtype=engine.kv_dtype,
        reserve_bytes=None if options.reserve is None else engine.reserve_bytes,
        gpu_memory_bytes=engine.gpu_memory_bytes,
        memory_share=None
        if options.gpu_memory_utilization is None
        else engine.gpu_memory_utilization,
        max_num_batched_tokens=None
        if options.max_num_batched_tokens is None
        else engine.max_num_batched_tokens,
        block_size=None if options.block_size is None else engine.block_size,
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
    )


def _seed(options: GpusOptions, inputs: Inputs) -> int:
    return 0 if options.seed is None else inputs.whole("--seed", options.seed)


def points(wanted: bool) -> Points:
    """Simulated points of earlier runs, in the user's cache folder."""
    if not wanted:
        return NoPoints()
    folder = cache_folder()
    if folder is None:
        return NoPoints()
    package = Path(capplan.__file__).parent
    return PointFiles(folder / "points", version_of(package, "1"))


def _assume_course(demand: Demand, result: GpusResult, inputs: Inputs) -> None:
    """What was made of traffic that changes, for the search and for the proof."""
    if demand.course(1, 0.0) is None:
        return
    rate = units.format_rate(demand.peak_per_s, digits=3)
    held = f"{rate}, held; arrivals {demand.arrivals_text}"
    inputs.assume("traffic of the search", held, "--qps, --arrivals")
    if demand.peaks_apart:
        inputs.assume("peaks of the classes", "taken to come together", "traffic.classes")
    proof = result.sizing.proof if result.sizing is not None else None
    if proof is not None:
        few = "held as well: the trace has too few requests for its percentile"
        inputs.assume("traffic of the proof", proof.course or few, "traffic.trace, traffic.rate")


def _assume_engine(asked: Asked, result: GpusResult, inputs: Inputs) -> None:
    """What the engine's version sets by itself on the chosen accelerator."""
    options = asked.options
    assert result.sizing is not None
    kind = next(iter(result.sizing.kinds), None)
    bounds = units.format_tokens(asked.questions[0].engine.max_num_batched_tokens)
    if kind is None or kind.sustained is None:
        if options.max_num_batched_tokens is None:
            inputs.assume(TOKEN_BUDGET, f"{bounds} tokens", "--max-num-batched-tokens")
        return
    if result.served_as is not None and result.served_as.one_pool:
        simple = "one pool, current rules: docs/planner.md"
        inputs.assume("scheduler, simplified", simple, "capplan simulate: exact")
    if kind.dp > 1:
        inputs.assume("copies of the attention", ONE_BATCH, "--dp-attention")
    if options.gpu_memory_utilization is None and result.served_as is not None:
        share = units.format_fraction(result.served_as.gpu_memory_utilization)
        inputs.assume("share of visible memory for the engine", share, "--gpu-memory-utilization")
    if options.reserve is None:
        inputs.assume("runtime and activations a GPU", "itemised: capplan kv", "--reserve")
    if options.max_num_seqs is None:
        inputs.assume("running requests a replica", f"{kind.max_num_seqs:,}", "--max-num-seqs")
    if options.max_num_batched_tokens is None and kind.max_num_batched_tokens is not None:
        tokens = units.format_tokens(kind.max_num_batched_tokens)
        beside = "" if tokens == bounds else f"; bounds: {bounds}"
        inputs.assume(TOKEN_BUDGET, f"{tokens} tokens{beside}", "--max-num-batched-tokens")
