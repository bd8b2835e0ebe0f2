"""Bounds of the planner for a deployment as it is: means, without queueing."""

from __future__ import annotations

from capplan.check.cases import Case
from capplan.check.predictions import Level, Prediction, banded
from capplan.check.rules.traffic import mean_lengths, rate_per_s
from capplan.errors import CapplanError
from capplan.planner.bands import latency_band
from capplan.planner.gpus import key_of_bounds, plan
from capplan.planner.question import EngineSettings, FleetSettings, Limits, Question, Workload
from capplan.planner.replica import MeanStep, Replica

_FREE_S = 3600.0  # stands in for a limit that is not set


def bounded(case: Case) -> Prediction | None:
    """What the steady state of means says; None where the rate or the memory is not known."""
    question, replicas = _question(case), case.num_replicas
    if question is None or not replicas:
        return None
    try:
        return _answer(case, question, replicas)
    except (CapplanError, ArithmeticError, ValueError, AssertionError):
        return None


def needed_by_bounds(case: Case) -> int:
    """The fewest replicas by the bounds; 0 where there is none, or nothing is known."""
    question = _question(case)
    if question is None:
        return 0
    try:
        answer = plan(question)
    except (CapplanError, ArithmeticError, ValueError, AssertionError):
        return 0
    return answer.num_replicas if answer.feasible and answer.num_replicas else 0


def _answer(case: Case, question: Question, replicas: int) -> Prediction:
    rate = question.workload.arrival_rate_per_s
    replica = Replica(question, case.tp or 1)
    each = rate / replicas
    step = replica.mean_step_at_rate(each)
    shown = step or replica.mean_step(float(max(1, replica.max_sequences)))
    workload = question.workload
    levels = [
        Level(key, f"mean {key.upper()}", limit, value, value <= limit)
        for key, limit, value in (
            ("ttft", question.limits.slo_ttft_s, shown.ttft_s),
            ("tpot", question.limits.slo_tpot_s, shown.step_time_s),
        )
        if limit < _FREE_S
    ]
    return Prediction(
        rate_per_s=rate,
        num_replicas=replicas,
        saturated=step is None,
        levels=tuple(levels),
        needed_replicas=needed_by_bounds(case),
        steps=(
            f"{rate:.4g} requests/s of {workload.prompt_tokens:,} prompt and "
            f"{workload.output_tokens:,} output tokens on {replicas} replicas: {each:.3g}/s each",
            f"{shown.decode_batch:.3g} requests decode at a time, "
            f"a step takes {1000 * shown.step_time_s:.3g} ms",
            *_bands(question, replica, shown, each),
        ),
        assumed=(
            *case.own.notes,
            "bounds of means, without queueing: this engine is not simulated",
        ),
    )


def _bands(question: Question, replica: Replica, step: MeanStep, each_per_s: float) -> list[str]:
    """As of servers under vLLM V1, which were measured most."""
    best = replica.best_mean_step()
    used = each_per_s / best.requests_per_s if best is not None else 1.0
    key = key_of_bounds(question, replica.tp, used)
    return [
        banded(f"mean {name.upper()}", latency_band(name, "mean", 0.0, value, None, key))
        for name, value in (("ttft", step.ttft_s), ("tpot", step.step_time_s))
    ]


def _question(case: Case) -> Question | None:
    slos, traffic, setup = case.section.slos, case.section.traffic, case.setup
    if slos is None or traffic is None or setup is None or case.edition is None:
        return None
    if setup.engine.dp > 1:
        return None  # bounds are of one copy of the attention
    rate = rate_per_s(traffic)
    if rate is None:
        return None
    prompt, output = mean_lengths(traffic)
    budget = setup.budget
    return Question(
        model=setup.model,
        hardware_id=case.hardware_id or setup.hardware.name,
        hardware=setup.hardware,
        workload=Workload(rate, max(1, round(prompt)), max(1, round(output))),
        limits=Limits(
            slos.ttft.limit if slos.ttft else _FREE_S, slos.tpot.limit if slos.tpot else _FREE_S
        ),
        engine=EngineSettings(
            dtype=case.edition.format,
            kv_dtype=case.kv_format or setup.model.activation_dtype,
            tp=setup.tp,
            gpu_memory_utilization=budget.memory_share,
            reserve_bytes=round(budget.overhead_bytes),
            max_num_batched_tokens=budget.max_num_batched_tokens,
            block_size=budget.block_size,
        ),
        fleet=FleetSettings(num_spares=0, usd_per_gpu_hour=case.usd_per_gpu_hour),
        calibration=case.own.calibration,
    )
