"""The question of `capplan gpus` as it was understood, for the screen and for JSON."""

from __future__ import annotations

from capplan.cli.gpus_asked import Asked
from capplan.results.gpus import GpusInputs

DEFAULT_OBJECTIVE = "cost"


def said_of(asked: Asked) -> GpusInputs:
    options = asked.options
    questions, first = asked.questions, asked.questions[0]
    limits = {limit.key: limit for limit in asked.limits}
    simulated = asked.percentile is not None
    engine, fleet, workload = first.engine, first.fleet, first.workload
    return GpusInputs(
        model=asked.model_id,
        model_name=first.model.name,
        hardware=tuple(item.hardware_id for item in questions),
        arrival_rate_per_s=workload.arrival_rate_per_s,
        prompt_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        slo_ttft_s=limits["ttft"].limit_s if "ttft" in limits else None,
        slo_tpot_s=limits["tpot"].limit_s if "tpot" in limits else None,
        slo_statistic=_statistic(asked),
        slo_e2e_s=limits["e2e"].limit_s if "e2e" in limits else None,
        slo_itl_s=limits["itl"].limit_s if "itl" in limits else None,
        slo_percentiles={}
        if asked.percentile is None
        else {key: each.percentile or asked.percentile for key, each in limits.items()},
        verify=simulated,
        objective=options.objective or DEFAULT_OBJECTIVE,
        arrivals=_arrivals(asked),
        plan=options.plan,
        trace=options.trace,
        prompt_lengths=asked.prompt,
        output_lengths=asked.output,
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
        calibration=options.calibration,
    )


def _arrivals(asked: Asked) -> str:
    if asked.demand is None:
        return asked.options.arrivals or "poisson"
    kinds = {part.arrivals.text for part in asked.demand.parts}
    return kinds.pop() if len(kinds) == 1 else "several classes"


def _statistic(asked: Asked) -> str:
    """`mean`, `P99`, or `percentiles` where they differ."""
    if asked.percentile is None:
        return "mean"
    own = {limit.percentile or asked.percentile for limit in asked.limits}
    return f"P{own.pop():g}" if len(own) == 1 else "percentiles"
