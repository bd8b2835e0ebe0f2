"""A deployment's own configuration, simulated step by step under the stated traffic."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from capplan import units
from capplan.check.cases import Case
from capplan.check.plan_bounds import bounded, needed_by_bounds
from capplan.check.predictions import Level, Prediction, banded
from capplan.errors import CapplanError
from capplan.planner.serving import Serving
from capplan.planner.simulate import SimulateQuestion, simulate_plan
from capplan.results.simulate import SimulateResult
from capplan.simulator.fleet.plan import fleet_settings
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.yardstick import Limit
from capplan.specs.slos import Slos
from capplan.specs.traffic import TrafficSpec

# Enough for a P99, which needs ten requests beyond it, after what a warm-up takes.
NUM_REQUESTS = 1500
_MOST_TRIES = 3
_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}


def prediction(case: Case) -> Prediction | None:
    """None where memory or the number of replicas is not known."""
    traffic, slos, replicas = case.section.traffic, case.section.slos, case.num_replicas
    if traffic is None or slos is None or not replicas or case.role_without_decodes:
        return None
    if case.setup is None or case.deployment.hidden:
        return None
    try:
        return _simulated(case, traffic, slos, replicas)
    except (CapplanError, ArithmeticError, ValueError, KeyError):
        # An engine whose scheduler is not simulated: bounds without queueing.
        return bounded(case)


def _simulated(case: Case, traffic: TrafficSpec, slos: Slos, replicas: int) -> Prediction:
    result = run(case, traffic, slos, replicas)
    needed = _needed(case, traffic, slos, replicas, result)
    usage = result.usage
    steps = [
        f"simulated: {result.num_requests:,} requests on {replicas} "
        f"replica{'' if replicas == 1 else 's'}",
        f"{result.saturation.offered_per_s:.4g} requests/s come, "
        f"{result.saturation.served_per_s:.4g}/s are served",
    ]
    if usage.mean_batch is not None and usage.mean_step_s is not None:
        step = units.format_duration(usage.mean_step_s, digits=3)
        steps.append(f"mean batch {usage.mean_batch:.3g}, mean step {step}")
    steps.append(
        f"KV at most {usage.kv_used_fraction_max:.0%} full, {usage.num_preemptions} preemptions"
    )
    return Prediction(
        rate_per_s=result.saturation.offered_per_s,
        num_replicas=replicas,
        saturated=result.saturation.saturated,
        levels=tuple(_levels(result)),
        needed_replicas=needed,
        steps=(*steps, *_bands(result)),
        assumed=(
            *case.own.notes,
            f"seed {traffic.seed}",
            *(() if case.section.clients is not None else ("users wait as long as it takes",)),
        ),
    )


def _bands(result: SimulateResult) -> list[str]:
    """How far measured servers like it were from such predictions, for each limit."""
    found = []
    for level in result.service_levels:
        statistic = f"P{level.percentile:g}"
        for band in result.bands:
            if (band.figure, band.statistic) == (level.key, statistic):
                found.append(banded(f"{_NAMES.get(level.key, level.name)} {statistic}", band))
    return found


def _levels(result: SimulateResult) -> list[Level]:
    return [
        Level(
            level.key,
            f"{_NAMES.get(level.key, level.name)} P{level.percentile:g}",
            level.limit_s,
            level.value_s,
            level.met,
        )
        for level in result.service_levels
    ]


def run(case: Case, traffic: TrafficSpec, slos: Slos, replicas: int) -> SimulateResult:
    """One simulation of the deployment with so many replicas."""
    setup = case.setup
    assert setup is not None
    edition = setup.engine.edition
    engine = replace(setup.engine, dtype=edition.format if edition is not None else None)
    chunked = case.deployment.flag("chunked_prefill")
    prefix = case.deployment.flag("prefix_caching")
    if prefix is not None and prefix.switch is not None:
        engine = replace(engine, enable_prefix_caching=prefix.switch)
    serving = Serving(
        model_id=case.model.id if case.model else setup.model.name,
        hardware_id=case.hardware_id or setup.hardware.name,
        deployment=replace(setup, engine=engine),
        num_replicas=replicas,
        ep=setup.tp * engine.dp if engine.dp > 1 else 1,
        enable_chunked_prefill=chunked.switch if chunked is not None else None,
        calibration=case.own.calibration,
    )
    stated = case.section
    spec = traffic
    if traffic.requests is None and traffic.duration is None:
        spec = traffic.model_copy(update={"requests": NUM_REQUESTS})
    folder = Path(case.config.folder)
    question = SimulateQuestion(
        serving=serving,
        traffic=lambda seed: requests_of(spec, seed, folder),
        stationary=spec.is_stationary,
        fleet=fleet_settings(
            replicas, clients=stated.clients, admission=stated.admission, router=stated.router
        ),
        limits=tuple(limits(slos)),
        percentiles=(50.0, 90.0, 99.0),
        goodput_fraction=None,
        warmup_s=None,
        seed=spec.seed,
        num_replications=1,
    )
    return simulate_plan(question).result


def limits(slos: Slos) -> list[Limit]:
    """The limits of a section, each at its percentile."""
    found = []
    for key in _NAMES:
        stated = getattr(slos, key)
        if stated is not None:
            found.append(Limit(key, stated.limit, stated.percentile or slos.percentile))
    return found


def _needed(
    case: Case, traffic: TrafficSpec, slos: Slos, replicas: int, result: SimulateResult
) -> int:
    """The fewest replicas that meet the limits: from the bounds up, each tried.

    Two that meet them are taken as they are: one and a spare.
    """
    if replicas <= 2 and _meets(result):
        return replicas
    least = needed_by_bounds(case)
    if not least:
        return 0
    flow = result.saturation
    if flow.saturated and flow.served_per_s > 0:
        # The bounds know no cap on running requests; what was served does.
        least = max(least, math.ceil(flow.offered_per_s * replicas / flow.served_per_s))
    for num in range(least, least + _MOST_TRIES):
        tried = result if num == replicas else run(case, traffic, slos, num)
        if _meets(tried):
            return num
    return 0


def _meets(result: SimulateResult) -> bool:
    return not result.saturation.saturated and all(level.met for level in result.service_levels)
