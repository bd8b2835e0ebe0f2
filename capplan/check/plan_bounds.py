"""What a deployment does under stated traffic: bounds of the planner, for it as it is."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.check.cases import Case
from capplan.check.rules.sizes import rooms
from capplan.check.rules.traffic import mean_lengths, rate_per_s
from capplan.errors import CapplanError
from capplan.planner.gpus import plan
from capplan.planner.question import EngineSettings, FleetSettings, Limits, Question, Workload
from capplan.planner.replica import Replica

_FREE_S = 3600.0  # stands in for a limit that is not set


@dataclass(frozen=True)
class Predicted:
    """At the stated rate; ``needed_replicas`` 0 where no number of replicas meets the limits."""

    rate_per_s: float
    num_replicas: int
    most_per_s: float
    overloaded: bool
    ttft_s: float
    tpot_s: float
    needed_replicas: int
    steps: tuple[str, ...]
    assumed: tuple[str, ...]


def predicted(case: Case) -> Predicted | None:
    """None where traffic, limits, memory or the number of replicas is not known."""
    traffic, slo = case.section.traffic, case.section.slo
    replicas = case.num_replicas
    if traffic is None or slo is None or not replicas or case.role_without_decodes:
        return None
    rate = rate_per_s(traffic)
    room = next(iter(rooms(case)), None)
    if rate is None or room is None or case.edition is None:
        return None
    try:
        return _answer(case, rate, replicas)
    except (CapplanError, ArithmeticError, ValueError, AssertionError):
        return None


def _answer(case: Case, rate: float, replicas: int) -> Predicted | None:
    question = _question(case, rate)
    if question is None:
        return None
    replica = Replica(question, case.tp or 1)
    best = replica.best_mean_step()
    per_replica = rate / replicas
    step = replica.mean_step_at_rate(per_replica)
    answer = plan(question)
    needed = answer.num_replicas if answer.feasible and answer.num_replicas else 0
    most = best.requests_per_s if best is not None else 0.0
    if step is None:
        most = most or replica.mean_step(float(max(1, replica.max_sequences))).requests_per_s
    shown = step or replica.mean_step(float(max(1, replica.max_sequences)))
    prompt, output = question.workload.prompt_tokens, question.workload.output_tokens
    steps = (
        f"{rate:.4g} requests/s of {prompt:,} prompt and {output:,} output tokens",
        f"on {replicas} replicas: {per_replica:.3g}/s each",
        f"a replica carries at most {most:.3g}/s within the limits",
        f"at {per_replica:.3g}/s: {shown.decode_batch:.3g} requests decode, a step takes "
        f"{1000 * shown.step_time_s:.3g} ms",
    )
    return Predicted(
        rate,
        replicas,
        most,
        step is None,
        shown.ttft_s,
        shown.step_time_s,
        needed,
        steps,
        ("means, without queueing (bounds of `capplan gpus`)",),
    )


def _question(case: Case, rate: float) -> Question | None:
    slo, traffic, setup = case.section.slo, case.section.traffic, case.setup
    if (
        slo is None
        or traffic is None
        or setup is None
        or case.model is None
        or case.edition is None
    ):
        return None
    prompt, output = mean_lengths(traffic)
    budget = setup.budget
    return Question(
        model=setup.model,
        hardware_id=case.hardware_id or setup.hardware.name,
        hardware=setup.hardware,
        workload=Workload(rate, max(1, round(prompt)), max(1, round(output))),
        limits=Limits(slo.ttft or _FREE_S, slo.tpot or _FREE_S),
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
    )
