"""What a fleet costs and what it draws: prices from the hardware file or the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from capplan.errors import CapplanError
from capplan.formulas import capacity
from capplan.planner.bounds import decode_tokens_per_s
from capplan.planner.question import FleetSettings, Question
from capplan.planner.replica import Replica
from capplan.results.gpus import Cost, GpusPlan, Power
from capplan.specs.hardware import HardwareSpec

# A tier's factor, where a file has no price of it, is for the user to say: contracts differ.
_HINT = "say --price $2.50 (a GPU-hour), or --price-factor 0.6 (of the on-demand price)"


@dataclass(frozen=True, slots=True)
class GpuPrice:
    """Dollars a GPU-hour before the factor, and where they come from."""

    usd_per_gpu_hour: float
    tier: str
    as_of: str | None
    source: str


def price_of(hardware: HardwareSpec, fleet: FleetSettings) -> GpuPrice | None:
    """The user's price, else the file's first of the tier; None where it has none."""
    if fleet.usd_per_gpu_hour is not None:
        return GpuPrice(fleet.usd_per_gpu_hour, "given", None, "--price")
    listed = hardware.price_of(fleet.price_tier)
    if listed is None:
        return None
    where = " ".join(part for part in (listed.provider, listed.instance) if part)
    as_of = listed.as_of.isoformat()
    return GpuPrice(listed.usd_per_gpu_hour, listed.tier, as_of, f"{where}, {listed.tier}, {as_of}")


def require_prices(questions: Sequence[Question]) -> None:
    """Where the bill decides, every accelerator needs a price.

    Raises CapplanError with the accelerators that have none of the tier asked for.
    """
    missing = [q.hardware_id for q in questions if price_of(q.hardware, q.fleet) is None]
    if not missing:
        return
    tier = questions[0].fleet.price_tier
    known = sorted({p.tier for q in questions for p in q.hardware.prices})
    names = ", ".join(missing)
    raise CapplanError(
        f"no {tier} price of {names} is on file, so the cost cannot be compared",
        hint=_HINT + (f"; on file: {', '.join(known)}" if known else ""),
    )


def with_money_and_power(plan: GpusPlan, question: Question, replica: Replica) -> GpusPlan:
    """The plan with its bill (where a price is known) and its power (where a TDP is)."""
    plan = replace(plan, power=_power(plan, question))
    cost = _cost(plan, question, replica)
    if cost is None:
        return plan
    return replace(
        plan,
        usd_per_gpu_hour=cost.usd_per_gpu_hour,
        usd_per_hour=cost.usd_per_hour,
        usd_per_million_output_tokens=capacity.usd_per_million_tokens(
            cost.usd_per_hour, plan.output_tokens_per_s
        ),
        price_source=cost.source,
        cost=cost,
    )


def _cost(plan: GpusPlan, question: Question, replica: Replica) -> Cost | None:
    price = price_of(question.hardware, question.fleet)
    if price is None or plan.num_gpus_rounded is None:
        return None
    workload, factor = question.workload, question.fleet.price_factor
    per_gpu = price.usd_per_gpu_hour * factor
    per_hour = per_gpu * plan.num_gpus_rounded
    prefill = capacity.prefill_time_fraction(
        replica.prefill_requests_per_s,
        workload.output_tokens - 1,
        decode_tokens_per_s(replica),
    )
    prompt_tokens_per_s = workload.arrival_rate_per_s * workload.prompt_tokens
    output_tokens_per_s = workload.arrival_rate_per_s * workload.output_tokens
    per_million = capacity.usd_per_million_tokens
    return Cost(
        usd_per_gpu_hour_listed=price.usd_per_gpu_hour,
        price_factor=factor,
        usd_per_gpu_hour=per_gpu,
        tier=price.tier,
        as_of=price.as_of,
        source=price.source if factor == 1 else f"{price.source} x {factor:g}",
        num_gpus=plan.num_gpus_rounded,
        usd_per_hour=per_hour,
        usd_per_month=capacity.usd_per_month(per_hour),
        hours_per_month=capacity.HOURS_PER_MONTH,
        prefill_time_fraction=prefill,
        usd_per_million_tokens=per_million(per_hour, prompt_tokens_per_s + output_tokens_per_s),
        usd_per_million_prompt_tokens=per_million(per_hour * prefill, prompt_tokens_per_s),
        usd_per_million_generated_tokens=per_million(per_hour * (1 - prefill), output_tokens_per_s),
    )


def _power(plan: GpusPlan, question: Question) -> Power | None:
    board = question.hardware.board
    if board is None or plan.num_gpus_rounded is None or plan.busy_fraction is None:
        return None
    assert plan.num_gpus is not None
    workload, idle = question.workload, question.fleet.idle_power_fraction
    peak_w = board.tdp * plan.num_gpus_rounded
    # Spares and what fills up the nodes share the load, or idle: the mean is the same.
    busy = plan.busy_fraction * plan.num_gpus / plan.num_gpus_rounded
    average_w = capacity.average_power_w(peak_w, busy, idle)
    per_request = workload.prompt_tokens + workload.output_tokens
    return Power(
        tdp_w_per_gpu=board.tdp,
        num_gpus=plan.num_gpus_rounded,
        peak_power_w=peak_w,
        idle_fraction=idle,
        busy_fraction=busy,
        average_power_w=average_w,
        kwh_per_million_tokens=capacity.kwh_per_million_tokens(
            average_w, workload.arrival_rate_per_s * per_request
        ),
        kwh_per_million_output_tokens=capacity.kwh_per_million_tokens(
            average_w, plan.output_tokens_per_s
        ),
    )
