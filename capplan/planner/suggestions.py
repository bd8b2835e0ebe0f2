"""The nearest feasible point of an infeasible question: which limit to move, and by how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from capplan import units
from capplan.errors import CapplanError
from capplan.formulas.kv_blocks import longest
from capplan.performance.rates import compute_format
from capplan.planner.money import price_of
from capplan.planner.parallelism import allowed_tps
from capplan.planner.question import FleetSettings, Question
from capplan.planner.replica import Replica
from capplan.results.gpus import Suggestion
from capplan.specs.catalogue import load_all
from capplan.specs.hardware import HardwareSpec

_SMALLER_FORMATS = ("fp8", "int8", "nvfp4", "int4")


def suggest(question: Question, replicas: Sequence[Replica], fault: str) -> tuple[Suggestion, ...]:
    """Changes that lead to a feasible question, nearest first; every one has been tried."""
    other = _other_tp(question)
    if fault in ("weights", "kv_memory"):
        found = [other, *_smaller_weights(question), _shorter_prompt(replicas)]
        if not any(found):
            found = [_other_accelerator(question)]
    else:
        found = [other, *_looser_limits(replicas)]
    return tuple(suggestion for suggestion in found if suggestion is not None)


def feasible(replica: Replica) -> bool:
    """Whether any number of such replicas meets the limits."""
    return replica.fault() is None


def _other_tp(question: Question) -> Suggestion | None:
    """Only useful where the user fixed the degree."""
    if question.engine.tp is None:
        return None
    for tp in allowed_tps(question.model, question.hardware):
        if feasible(Replica(question, tp)):
            return Suggestion("--tp", str(tp), "meets every limit")
    return None


def _other_accelerator(question: Question) -> Suggestion | None:
    """The cheapest of the catalogue that serves the question, whatever it is called here."""
    best: tuple[float, int, str] | None = None
    for other in load_all(HardwareSpec, "hardware"):
        price = price_of(other.spec, FleetSettings())
        if price is None or (best and price.usd_per_gpu_hour >= best[0]):
            continue
        own = replace(question, hardware_id=other.id, hardware=other.spec)
        fixed = question.engine.tp
        for tp in [fixed] if fixed else allowed_tps(question.model, other.spec):
            cost = price.usd_per_gpu_hour * tp
            if (best is None or cost < best[0]) and _can(own, tp):
                best = (cost, tp, other.id)
    if best is None:
        return None
    cost, tp, name = best
    bill = units.format_money(cost, digits=3)
    why = f"the cheapest replica of the catalogue: TP {tp}, {bill}/hour"
    return Suggestion("--hardware", name, why)


def _can(question: Question, tp: int) -> bool:
    try:
        return feasible(Replica(question, tp))
    except CapplanError:  # it does not compute the format
        return False


def _smaller_weights(question: Question) -> list[Suggestion]:
    for dtype in _SMALLER_FORMATS:
        try:
            compute_format(question.hardware, dtype, question.model.activation_dtype)
        except CapplanError:
            continue
        changed = replace(question, engine=replace(question.engine, dtype=dtype))
        tps = [question.engine.tp] if question.engine.tp else None
        for tp in tps or allowed_tps(question.model, question.hardware):
            if feasible(Replica(changed, tp)):
                return [Suggestion("--dtype", dtype, f"weights in {dtype} fit at TP {tp}")]
    return []


def _shorter_prompt(replicas: Sequence[Replica]) -> Suggestion | None:
    """The longest prompt that one sequence may have where the weights leave any room."""
    room = [replica for replica in replicas if replica.pool_bytes_per_gpu > 0]
    if not room:
        return None
    replica = max(room, key=lambda r: r.pool_bytes_per_gpu / r.sequence_bytes_per_gpu)
    shorter = replica.question.workload.prompt_tokens - 1
    fits = longest(partial(_prompt_fits, replica), shorter)
    if not fits:
        return None
    return Suggestion(
        "--prompt-tokens", units.format_tokens(fits), f"one sequence fits at TP {replica.tp}"
    )


def _prompt_fits(replica: Replica, prompt_tokens: int) -> bool:
    question = replica.question
    workload = replace(question.workload, prompt_tokens=prompt_tokens)
    return feasible(Replica(replace(question, workload=workload), replica.tp))


def _looser_limits(replicas: Sequence[Replica]) -> list[Suggestion]:
    """The limits to move for the degree that misses by the smallest factor.

    Each is the shortest that the degree reaches without load, rounded up to two digits.
    """
    able = [r for r in replicas if r.fault() not in ("weights", "kv_memory")]
    if not able:
        return []
    nearest = min(able, key=lambda replica: (_miss_factor(replica), replica.tp))
    limits, step = nearest.question.limits, nearest.mean_step(0.0)
    found = []
    for option, limit_s, least_s in (
        ("--slo-ttft", limits.slo_ttft_s, step.ttft_s),
        ("--slo-tpot", limits.slo_tpot_s, step.step_time_s),
    ):
        if least_s > limit_s:
            shortest = units.format_duration(least_s, digits=3)
            why = f"TP {nearest.tp} reaches {shortest} without any load"
            found.append(Suggestion(option, units.format_duration(round_up(least_s)), why))
    return found


def _miss_factor(replica: Replica) -> float:
    limits, step = replica.question.limits, replica.mean_step(0.0)
    return max(step.ttft_s / limits.slo_ttft_s, step.step_time_s / limits.slo_tpot_s)


def round_up(value: float) -> float:
    """Two significant digits, upward.

    >>> round_up(0.00731), round_up(0.41)
    (0.0074, 0.41)
    """
    digits = 1 - math.floor(math.log10(value))
    scale = 10.0**digits
    return round(math.ceil(value * scale * (1 - 1e-9)) / scale, digits)
