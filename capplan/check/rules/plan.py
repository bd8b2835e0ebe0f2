"""Plan rules: where traffic and limits are given, do they hold, at what cost."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.plan_bounds import Predicted, predicted
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import seconds

HOURS_PER_MONTH = 730.0


def _levels(case: Case, found: Predicted) -> Iterator[tuple[str, float, float]]:
    slo = case.section.slo
    if slo is None:
        return
    if slo.ttft is not None:
        yield f"TTFT P{slo.percentile:g}", slo.ttft, found.ttft_s
    if slo.tpot is not None:
        yield f"TPOT P{slo.percentile:g}", slo.tpot, found.tpot_s


@rule("CP040", "slo-missed", "error", "the stated limits do not hold under the stated traffic")
def slo_missed(case: Case) -> Iterator[Remark]:
    """With `traffic:` and `slo:` in the configuration, the deployment is asked to carry them as it
    is: this many replicas, these options, this KV pool."""
    found = predicted(case)
    if found is None:
        return
    if found.overloaded:
        yield Remark(
            f"{found.rate_per_s:.4g} requests/s on {found.num_replicas} replicas: each carries at "
            f"most {found.most_per_s:.3g}/s",
            case.deployment.replicas.value if case.deployment.replicas else case.deployment.place,
            found.steps,
            f"use {found.needed_replicas} replicas",
            found.assumed,
        )
        return
    for name, limit, value in _levels(case, found):
        if value > limit:
            yield Remark(
                f"{name} is {seconds(value)}, the limit {seconds(limit)}",
                case.deployment.replicas.value
                if case.deployment.replicas
                else case.deployment.place,
                found.steps,
                f"use {found.needed_replicas} replicas"
                if found.needed_replicas
                else "no number of such replicas meets it: use more or faster GPUs a replica",
                found.assumed,
            )


@rule("CP041", "headroom-low", "warning", "a stated limit holds with little to spare")
def headroom_low(case: Case) -> Iterator[Remark]:
    """Traffic is never as flat as its mean. Less than the configured `headroom` (a fifth, unless
    said otherwise) between prediction and limit is within the error of any model."""
    found = predicted(case)
    if found is None or found.overloaded:
        return
    for name, limit, value in _levels(case, found):
        if limit * (1 - case.section.headroom) < value <= limit:
            yield Remark(
                f"{name} is {seconds(value)} of {seconds(limit)}, {1 - value / limit:.0%} is left; "
                f"{case.section.headroom:.0%} are asked for",
                case.deployment.replicas.value
                if case.deployment.replicas
                else case.deployment.place,
                found.steps,
                "add a replica",
                found.assumed,
            )


@rule("CP042", "cost-above-budget", "error", "the GPUs cost more than the stated budget")
def cost_above_budget(case: Case) -> Iterator[Remark]:
    """GPUs x replicas x the price of a GPU hour x 730 hours, against `usd_per_month` of the
    configuration."""
    budget, price = case.section.usd_per_month, case.usd_per_gpu_hour
    gpus, replicas = case.gpus_per_replica, case.num_replicas
    if budget is None or price is None or gpus is None or replicas is None:
        return
    cost = gpus * replicas * price * HOURS_PER_MONTH
    if cost <= budget:
        return
    most = int(budget // (gpus * price * HOURS_PER_MONTH))
    yield Remark(
        f"${cost:,.0f} a month, the budget is ${budget:,.0f}",
        case.deployment.replicas.value if case.deployment.replicas else case.deployment.place,
        (f"{gpus} GPUs x {replicas} replicas x ${price:.4g}/h x {HOURS_PER_MONTH:g} h",),
        f"use {most} replicas" if most else "use fewer or cheaper GPUs a replica",
    )


@rule("CP043", "replicas-above-need", "warning", "more replicas than the traffic needs")
def replicas_above_need(case: Case) -> Iterator[Remark]:
    """Replicas beyond what the stated traffic, limits and headroom need, and one spare, are paid
    for and idle."""
    found = predicted(case)
    if found is None or not found.needed_replicas:
        return
    enough = found.needed_replicas + 1
    if found.num_replicas <= enough:
        return
    yield Remark(
        f"{found.num_replicas} replicas; {found.needed_replicas} and one spare carry "
        f"{found.rate_per_s:.4g} requests/s",
        case.deployment.replicas.value if case.deployment.replicas else case.deployment.place,
        found.steps,
        f"use {enough} replicas",
        found.assumed,
    )


RULES = (slo_missed, headroom_low, cost_above_budget, replicas_above_need)
