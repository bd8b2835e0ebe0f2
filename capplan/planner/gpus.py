"""How many GPUs: the bounds, the binding one, and the fleet that covers them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from capplan.errors import CapplanError, UnsupportedError
from capplan.performance.bands import BandKey, band_for, band_key
from capplan.planner.bands import BAND_ENGINE, gpus_band, latency_band
from capplan.planner.bounds import (
    Sizing,
    binding_of,
    concurrency_at_limits,
    counted_as_given,
    decode_tokens_per_s,
    most_requests_per_s,
    size,
    with_bands,
)
from capplan.planner.fleet import Fleet, bought_band, fleet_of
from capplan.planner.money import with_money_and_power
from capplan.planner.parallelism import allowed_tps, check_tp
from capplan.planner.question import Question
from capplan.planner.replica import MeanStep, Replica
from capplan.planner.suggestions import suggest
from capplan.results.bands import BandedFigure, Range
from capplan.results.gpus import GpusPlan, GpusResult, ReplicaFacts, ServiceLevel, TpOption
from capplan.specs.kv_cache import kv_bytes_per_token


def plan_fleet(questions: Sequence[Question]) -> GpusResult:
    """Answer the same question for each accelerator; the cheapest feasible one is the result.

    Raises UnsupportedError where none of them can do what was asked.
    """
    return GpusResult.first_of(sorted(plan_each(questions), key=_preference))


def plan_each(questions: Sequence[Question]) -> list[GpusPlan]:
    """Each accelerator by its bounds, in the order given; those that cannot do it say so.

    Raises UnsupportedError where none of them can do what was asked.
    """
    plans: list[GpusPlan] = []
    refusals: list[UnsupportedError] = []
    for question in questions:
        try:
            plans.append(plan(question))
        except UnsupportedError as refusal:
            refusals.append(refusal)
            plans.append(_unsupported(question, refusal))
    if len(refusals) == len(plans):
        raise refusals[0]
    return plans


def _unsupported(question: Question, refusal: UnsupportedError) -> GpusPlan:
    return replace(
        _base(question), binding="unsupported", binding_limit="unsupported", why=refusal.message
    )


def plan(question: Question) -> GpusPlan:
    """The fleet for one accelerator by its bounds.

    Raises CapplanError where the question itself is wrong: a context beyond the model's, a TP
    that does not divide, a format that the accelerator does not compute.
    """
    _check(question)
    tp = question.engine.tp
    tps = [tp] if tp else allowed_tps(question.model, question.hardware)
    sizings = [size(Replica(question, tp)) for tp in tps]
    feasible = [sizing for sizing in sizings if sizing.bounds is not None]
    options = tuple(_option(question, sizing) for sizing in sizings)
    if not feasible:
        return _infeasible(question, sizings, options)
    # Fewest GPUs, then fewest after node rounding, then the smallest TP: the plain minimum over
    # degrees that are each monotone, so that a tighter limit never needs fewer GPUs.
    best = min(feasible, key=lambda s: (_num_gpus(s), _fleet(question, s).num_bought, s.tp))
    return _feasible(question, best, options)


def _check(question: Question) -> None:
    workload, model = question.workload, question.model
    if workload.context_tokens > model.max_context_tokens:
        raise CapplanError(
            f"{workload.prompt_tokens:,} prompt and {workload.output_tokens:,} output tokens "
            f"exceed the {model.max_context_tokens:,} tokens of context of {model.name}",
            hint="shorten --prompt-tokens or --output-tokens",
        )
    if question.engine.tp:
        check_tp(model, question.hardware, question.engine.tp)


def _num_gpus(sizing: Sizing) -> int:
    assert sizing.bounds is not None
    return sizing.bounds.num_gpus_combined


def _fleet(question: Question, sizing: Sizing) -> Fleet:
    return fleet_of(question, _num_gpus(sizing) // sizing.tp, sizing.tp)


def _feasible(question: Question, sizing: Sizing, options: tuple[TpOption, ...]) -> GpusPlan:
    assert sizing.bounds is not None
    assert sizing.best_step is not None
    replica, bounds = sizing.replica, sizing.bounds
    fleet = _fleet(question, sizing)
    num_replicas = bounds.num_gpus_combined // sizing.tp
    per_replica = question.workload.arrival_rate_per_s / num_replicas
    operating = replica.mean_step_at_rate(per_replica) or sizing.best_step
    most = most_requests_per_s(question, sizing.best_step)
    binding, limit = binding_of(replica, bounds, sizing.best_step)
    busy = per_replica / most
    counted = _counted(question, sizing)
    throughput = band_for("throughput", key_of_bounds(question, sizing.tp, 1.0))
    answer = replace(
        _base(question),
        feasible=True,
        binding=binding,
        binding_limit=limit,
        tp=sizing.tp,
        num_replicas=num_replicas,
        num_gpus=bounds.num_gpus_combined,
        num_nodes=fleet.num_nodes,
        num_gpus_rounded=fleet.num_bought,
        bounds=with_bands(bounds, replica, throughput, counted),
        replica=_replica_facts(replica, sizing.best_step),
        service_levels=_service_levels(question, operating),
        busy_fraction=busy,
        busy_fraction_with_spares=busy * num_replicas / (num_replicas + question.fleet.num_spares),
        tp_options=options,
        bands=(
            counted,
            bought_band(question, counted, sizing.tp),
            *_latency_bands(question, sizing.tp, operating, busy),
        ),
    )
    return with_money_and_power(answer, question, replica)


def _replica_facts(replica: Replica, best: MeanStep) -> ReplicaFacts:
    workload = replica.question.workload
    return ReplicaFacts(
        weight_bytes_per_gpu=replica.weight_bytes_per_gpu,
        kv_pool_bytes_per_gpu=replica.pool_bytes_per_gpu,
        kv_bytes_per_sequence_per_gpu=replica.sequence_bytes_per_gpu,
        max_sequences=replica.max_sequences,
        decode_batch=best.decode_batch,
        step_time_s=best.step_time_s,
        max_decode_batch=replica.max_decode_batch,
        output_tokens_per_s=decode_tokens_per_s(replica),
        prefill_tokens_per_s=replica.prefill_requests_per_s * workload.prompt_tokens,
        requests_per_s=best.requests_per_s,
    )


def _service_levels(question: Question, step: MeanStep) -> tuple[ServiceLevel, ...]:
    levels = [ServiceLevel("TTFT", question.limits.slo_ttft_s, step.ttft_s)]
    if question.workload.output_tokens > 1:
        levels.append(ServiceLevel("TPOT", question.limits.slo_tpot_s, step.step_time_s))
    return tuple(levels)


def key_of_bounds(question: Question, tp: int, utilisation: float) -> BandKey:
    """As of servers under the newest engine: bounds know neither engine nor queue."""
    own = question.calibration.own
    return band_key(
        question.model, question.hardware, BAND_ENGINE, tp, utilisation, own and own.at_tp(tp)
    )


def _counted(question: Question, sizing: Sizing) -> BandedFigure:
    """The GPUs of one degree, by throughput's band."""
    bounds, best = sizing.bounds, sizing.best_step
    assert bounds is not None
    assert best is not None
    if question.fleet.replica_output_tokens_per_s is not None:
        band = band_for("throughput", key_of_bounds(question, sizing.tp, 1.0))
        return counted_as_given(bounds, sizing.replica, band)
    most, rate = most_requests_per_s(question, best), question.workload.arrival_rate_per_s
    return gpus_band(
        bounds.num_gpus_combined, sizing.tp, rate, most, key_of_bounds(question, sizing.tp, 1.0),
        bounds.num_gpus_memory,
    )  # fmt: skip


def _latency_bands(
    question: Question, tp: int, step: MeanStep, busy: float
) -> Iterator[BandedFigure]:
    key = key_of_bounds(question, tp, busy)
    yield latency_band("ttft", "mean", 0.0, step.ttft_s, None, key)
    if question.workload.output_tokens > 1:
        yield latency_band("tpot", "mean", 0.0, step.step_time_s, None, key)


def _option(question: Question, sizing: Sizing) -> TpOption:
    if sizing.bounds is None:
        return TpOption(sizing.tp, None, sizing.fault or "infeasible")
    band = _counted(question, sizing)
    num = sizing.bounds.num_gpus_combined
    return TpOption(sizing.tp, num, "feasible", Range(band.low, band.high))


def _infeasible(
    question: Question, sizings: Sequence[Sizing], options: tuple[TpOption, ...]
) -> GpusPlan:
    # The degree that came furthest names the limit: weights, then KV, then latency.
    order = ["weights", "kv_memory", "ttft", "tpot", "token_budget"]
    last = max(sizings, key=lambda s: (order.index(s.fault or "weights"), s.tp))
    return replace(
        _base(question),
        binding="memory" if last.fault in ("weights", "kv_memory") else str(last.fault),
        binding_limit=str(last.fault),
        tp_options=options,
        suggestions=suggest(question, [sizing.replica for sizing in sizings], str(last.fault)),
    )


def _base(question: Question) -> GpusPlan:
    """What is known whether or not the question is feasible."""
    workload, engine = question.workload, question.engine
    in_flight = concurrency_at_limits(question)
    sequence = engine.kv_pool(question.model, 0.0).decode_bytes(workload.context_tokens)
    return GpusPlan(
        hardware=question.hardware_id,
        feasible=False,
        binding="",
        binding_limit="",
        why=None,
        tp=None,
        num_replicas=None,
        num_gpus=None,
        num_spare_replicas=question.fleet.num_spares,
        num_nodes=None,
        gpus_per_node=question.fleet.gpus_per_node or question.hardware.node.gpus,
        num_gpus_rounded=None,
        bounds=None,
        concurrency=in_flight,
        kv_bytes_per_token=kv_bytes_per_token(question.model, engine.kv_dtype),
        kv_demand_bytes=in_flight * sequence,
        output_tokens_per_s=workload.arrival_rate_per_s * workload.output_tokens,
        replica=None,
        service_levels=(),
        busy_fraction=None,
        busy_fraction_with_spares=None,
        usd_per_gpu_hour=None,
        usd_per_hour=None,
        usd_per_million_output_tokens=None,
        price_source=None,
        cost=None,
        power=None,
        tp_options=(),
        suggestions=(),
        sustained=None,
        served_as=None,
        bands=(),
    )


def _preference(plan: GpusPlan) -> tuple[bool, float, float, str]:
    cost = plan.usd_per_hour if plan.usd_per_hour is not None else float("inf")
    return (not plan.feasible, cost, plan.num_gpus or 0, plan.hardware)
