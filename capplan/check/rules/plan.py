"""Plan rules: where traffic and limits are given, do they hold, at what cost."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.foresight import predicted
from capplan.check.predictions import Prediction
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import seconds
from capplan.check.values import Value
from capplan.formulas.capacity import HOURS_PER_MONTH


def _replicas(case: Case) -> Value:
    """Where the number of replicas stands."""
    stated = case.deployment.replicas
    return stated.value if stated is not None else case.deployment.place


def _counted(replicas: int) -> str:
    return f"{replicas:,} replica{'' if replicas == 1 else 's'}"


def _more(found: Prediction) -> str:
    if found.needed_replicas > found.num_replicas:
        return f"use {_counted(found.needed_replicas)}"
    if found.needed_replicas:
        return f"{_counted(found.needed_replicas)} met it in a simulation of their own; add one"
    return "no number of such replicas meets it: use more or faster GPUs a replica"


@rule("CP040", "slo-missed", "error", "the stated limits do not hold under the stated traffic")
def slo_missed(case: Case) -> Iterator[Remark]:
    """With `traffic:` and `slos:` in the configuration (or in a plan.yaml), the deployment is
    simulated as it is: this many replicas, these options, this KV pool, step by step."""
    found = predicted(case)
    if found is None:
        return
    if found.saturated:
        yield Remark(
            f"saturated: {_counted(found.num_replicas)} cannot serve what comes, and the queue "
            "grows without end",
            _replicas(case), found.steps, _more(found), found.assumed,
        )  # fmt: skip
        return
    for level in found.levels:
        if level.met is False and level.value_s is not None:
            yield Remark(
                f"{level.name} is {seconds(level.value_s)}, the limit {seconds(level.limit_s)}",
                _replicas(case), found.steps, _more(found), found.assumed,
            )  # fmt: skip


@rule("CP041", "headroom-low", "warning", "a stated limit holds with little to spare")
def headroom_low(case: Case) -> Iterator[Remark]:
    """Traffic is never as flat as its mean. Less than the configured `headroom` (a fifth, unless
    said otherwise) between prediction and limit is within the error of any model."""
    found = predicted(case)
    if found is None or found.saturated:
        return
    for level in found.levels:
        value, limit = level.value_s, level.limit_s
        if value is None or not limit * (1 - case.section.headroom) < value <= limit:
            continue
        yield Remark(
            f"{level.name} is {seconds(value)} of {seconds(limit)}: {1 - value / limit:.0%} is "
            f"left, {case.section.headroom:.0%} is asked for",
            _replicas(case), found.steps, "add a replica", found.assumed,
        )  # fmt: skip


@rule("CP042", "cost-above-budget", "error", "the GPUs cost more than the stated budget")
def cost_above_budget(case: Case) -> Iterator[Remark]:
    """GPUs x replicas x the price of a GPU hour x 730 hours, against `usd_per_month` of the
    configuration."""
    budget, price = case.section.usd_per_month, case.usd_per_gpu_hour
    gpus, replicas = case.gpus_per_replica, case.num_replicas
    if budget is None or price is None or not gpus or replicas is None:
        return
    cost = gpus * replicas * price * HOURS_PER_MONTH
    if cost <= budget:
        return
    most = int(budget // (gpus * price * HOURS_PER_MONTH))
    yield Remark(
        f"${cost:,.0f} a month, the budget is ${budget:,.0f}",
        _replicas(case),
        (
            f"{gpus} GPU{'' if gpus == 1 else 's'} x {_counted(replicas)} x ${price:.4g}/h "
            f"x {HOURS_PER_MONTH:g} h",
        ),
        f"use {_counted(most)}" if most else "use fewer or cheaper GPUs a replica",
    )


@rule("CP043", "replicas-above-need", "warning", "more replicas than the traffic needs")
def replicas_above_need(case: Case) -> Iterator[Remark]:
    """Replicas beyond what the stated traffic and limits need (as simulated), and one spare, are
    paid for and idle."""
    found = predicted(case)
    if found is None or not found.needed_replicas or not found.meets:
        return
    enough = found.needed_replicas + 1
    if found.num_replicas <= enough:
        return
    price, gpus = case.usd_per_gpu_hour, case.gpus_per_replica
    saved = ""
    if price is not None and gpus:
        idle = (found.num_replicas - enough) * gpus * price * HOURS_PER_MONTH
        saved = f" (${idle:,.0f} a month less)"
    yield Remark(
        f"{found.num_replicas} replicas, where {found.needed_replicas} and a spare would do to "
        "meet every limit",
        _replicas(case), found.steps, f"use {enough} replicas{saved}", found.assumed,
    )  # fmt: skip


RULES = (slo_missed, headroom_low, cost_above_budget, replicas_above_need)
