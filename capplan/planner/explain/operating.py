"""Prefill and decode together: the steady state of a replica, the combined bound, the limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from capplan.performance.batch import StepTime
from capplan.planner.bounds import most_requests_per_s
from capplan.planner.explain.figure import figure
from capplan.planner.explain.steps import step_time
from capplan.planner.question import Question
from capplan.planner.replica import Replica
from capplan.results.explanation import Figure, Symbol
from capplan.results.gpus import GpusPlan


def combined_figures(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    """The rate of a replica, and the GPUs that follow."""
    if replica.question.workload.output_tokens > 1:
        yield _mean_rate(replica, plan)
    yield _combined(replica, plan, rate_symbol(replica.question))


def operating_figures(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    """How full the replicas of the bounds are, and what requests see at that size."""
    question, facts = replica.question, plan.replica
    assert facts is not None
    assert plan.num_replicas is not None
    rate = rate_symbol(question)
    if question.fleet.replica_output_tokens_per_s is not None:
        carried = most_requests_per_s(question, replica.mean_step(facts.decode_batch))
    else:
        carried = facts.requests_per_s
    assert plan.busy_fraction is not None
    yield figure(
        "share of the bound",
        plan.busy_fraction,
        "",
        "busy = rate / (replicas × carried)",
        [
            rate,
            Symbol("replicas", "without spares", plan.num_replicas, ""),
            Symbol("carried", "by a replica, at most", carried, "req/s"),
        ],
        why="Waiting grows steeply as it nears 1.",
        picture="How full the road is.",
        check=f"{1 - plan.busy_fraction:.1%} are left for bursts; in an M/D/1 queue the mean wait "
        f"would be {_md1(plan.busy_fraction)} service times.",
        source="docs/model.md 17; Pollaczek-Khinchine for the check",
    )
    yield from _levels(replica, plan)


def rate_symbol(question: Question) -> Symbol:
    return Symbol("rate", "offered at the peak", question.workload.arrival_rate_per_s, "req/s")


def _md1(busy: float) -> str:
    return f"{busy / (2 * (1 - busy)):.3g}" if busy < 1 else "unboundedly many"


def _mean_rate(replica: Replica, plan: GpusPlan) -> Figure:
    facts = plan.replica
    assert facts is not None
    output = replica.question.workload.output_tokens
    budget = replica.question.engine.max_num_batched_tokens
    return figure(
        "requests a second of a replica",
        facts.requests_per_s,
        "req/s",
        "carried = batch / ((output - 1) × time)",
        [
            Symbol("batch", "decodes a step, at the edge of the limits", facts.decode_batch, ""),
            Symbol("output", "of an answer", output, "tokens"),
            Symbol("time", "of a step that carries their prompts too", facts.step_time_s, "s"),
        ],
        why="Prefill and decode share every step: this is what a replica really carries.",
        picture="A full bus: each that gets off makes room for one whose prompt is then read.",
        check=f"A step carries {_prompt_tokens(replica, facts.decode_batch):,.0f} prompt tokens "
        f"beside {facts.decode_batch:.3g} decodes, of {budget:,} that it may.",
        source="docs/model.md 17; Agrawal et al., Sarathi-Serve, arXiv:2403.02310",
    )


def _prompt_tokens(replica: Replica, batch: float) -> float:
    workload = replica.question.workload
    return batch * workload.prompt_tokens / (workload.output_tokens - 1)


def _combined(replica: Replica, plan: GpusPlan, rate: Symbol) -> Figure:
    bounds, facts = plan.bounds, plan.replica
    assert bounds is not None
    assert facts is not None
    symbols = [
        Symbol("decode", "GPUs by decode", bounds.num_gpus_decode, ""),
        Symbol("prefill", "GPUs by prefill", bounds.num_gpus_prefill, ""),
    ]
    if replica.question.fleet.replica_output_tokens_per_s is not None:
        symbols.append(Symbol("memory", "GPUs by memory", bounds.num_gpus_memory, ""))
        formula = "gpus = max(decode, prefill, memory)"
    else:
        symbols += [
            rate,
            Symbol("carried", "by a replica", facts.requests_per_s, "req/s"),
            Symbol("tp", "GPUs a replica", replica.tp, ""),
        ]
        formula = "gpus = max(decode, prefill, ceil(rate / carried) × tp)"
    return figure(
        "GPUs by all limits together",
        bounds.num_gpus_combined,
        "",
        formula,
        symbols,
        why="This is the answer of the bounds.",
        picture="The largest of what each asks for, and of what all ask for at once.",
        check=f"{plan.num_replicas} replicas of {replica.tp}; never below a single bound.",
        source="docs/model.md 17",
    )


def _levels(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    """TTFT and TPOT at the recommended size."""
    question = replica.question
    workload = question.workload
    assert plan.num_replicas is not None
    assert plan.replica is not None
    per_replica = workload.arrival_rate_per_s / plan.num_replicas
    step = replica.mean_step_at_rate(per_replica) or replica.mean_step(plan.replica.decode_batch)
    batch = step.decode_batch
    for level in plan.service_levels:
        assert level.predicted_s is not None  # by bounds
        word = "meets" if level.met else "misses"
        why = f"The limit is {level.limit_s * 1e3:.4g} ms; this {word} it, as a mean without queue."
        if level.name == "TPOT":
            parts = replica.steps.time(replica.mean_batch(batch))
            picture = f"{batch:.3g} decodes and the prompts that replace the finished ones."
        else:
            parts, num = _prefill(replica, batch)
            noun = "step" if num == 1 else "steps"
            picture = f"One prompt is read beside {batch:.3g} decodes, in {num:,} {noun}."
        yield step_time(level.name, parts, level.predicted_s, why=why, picture=picture)


def _prefill(replica: Replica, num_decodes: float) -> tuple[StepTime, int]:
    """The parts of all steps in which one prompt is read, summed; and their number."""
    steps = replica.prefill_steps(num_decodes)
    parts = {
        field.name: sum(times * getattr(step, field.name) for times, step in steps)
        for field in fields(StepTime)
    }
    return StepTime(**parts), sum(times for times, _ in steps)
