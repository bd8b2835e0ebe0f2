"""One setting moved over values, everything else and all random numbers the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from capplan.formulas.knee import frontier, knee
from capplan.performance.kv_engine import Deployment
from capplan.planner.serving import Serving
from capplan.planner.simulate import Progress, SimulateQuestion, simulate_plan
from capplan.results.pareto import Knee, ParetoPoint, ParetoResult
from capplan.results.simulate import SimulateResult

SWEEPS = ("max_num_seqs", "max_num_batched_tokens", "tp", "replicas", "qps")
KNEE_RULE = (
    "of the frontier, the point farthest below the chord between its ends, throughput and the "
    "logarithm of latency scaled to 0..1 (Kneedle, Satopaa et al. 2011)"
)


def serving_at(serving: Serving, sweep: str, value: float) -> Serving:
    """The deployment with one setting changed; `qps` changes the traffic alone."""
    deployment, number = serving.deployment, int(value)
    if sweep == "replicas":
        return replace(serving, num_replicas=number)
    if sweep == "qps":
        return serving
    engine = deployment.engine
    if sweep == "max_num_seqs":
        engine = replace(engine, max_num_seqs=number)
    elif sweep == "max_num_batched_tokens":
        engine = replace(engine, max_num_batched_tokens=number)
    tp = number if sweep == "tp" else deployment.tp
    return replace(
        serving, deployment=Deployment(deployment.model, deployment.hardware, engine, tp)
    )


def pareto(
    at: Callable[[float], SimulateQuestion],
    values: Sequence[float],
    *,
    latency: str,
    percentile: float,
    progress: Progress,
) -> ParetoResult:
    """Simulate each value (`at` makes its question); Ctrl-C keeps the points that are done."""
    points: list[ParetoPoint] = []
    interrupted = False
    for number, value in enumerate(values):
        progress(number, len(values))
        result = simulate_plan(at(value)).result
        if result.end == "interrupted":
            interrupted = True
            break
        points.append(_point(value, result, percentile))
    return _judged(points, latency, interrupted)


def _point(value: float, result: SimulateResult, percentile: float) -> ParetoPoint:
    def at_percentile(key: str) -> float | None:
        latency = next((found for found in result.latencies if found.key == key), None)
        if latency is None:
            return None
        return next(p.value_s for p in latency.percentiles if p.percentile == percentile)

    return ParetoPoint(
        value=value,
        verdict=result.verdict,
        meets=result.feasible,
        num_gpus=result.num_gpus,
        requests_per_s=result.requests_per_s,
        output_tokens_per_s=result.output_tokens_per_s,
        output_tokens_per_s_per_gpu=result.output_tokens_per_s / result.num_gpus,
        goodput_per_s=result.goodput.goodput_per_s if result.goodput else None,
        ttft_s=at_percentile("ttft"),
        tpot_s=at_percentile("tpot"),
        itl_s=at_percentile("itl"),
        e2e_s=at_percentile("e2e"),
        mean_batch=result.usage.mean_batch,
        kv_used_fraction=result.usage.kv_used_fraction,
        num_preemptions=result.usage.num_preemptions,
        on_frontier=False,
        bands=tuple(
            band
            for band in result.bands
            if band.figure.endswith("_per_s") or band.statistic == f"P{percentile:g}"
        ),
    )


def latency_of(point: ParetoPoint, key: str) -> float | None:
    """The percentile of one measure."""
    found: float | None = getattr(point, f"{key}_s")
    return found


def _judged(points: Sequence[ParetoPoint], latency: str, interrupted: bool) -> ParetoResult:
    """Frontier, knee, and what meets the limits."""
    known = [(p, cost) for p in points if (cost := latency_of(p, latency)) is not None]
    pairs = [(point.output_tokens_per_s_per_gpu, cost) for point, cost in known]
    on = frontier(pairs)
    found: Knee | None = None
    bend = knee([pairs[i] for i in on])
    if bend is not None and bend < len(on) - 1:
        (gain, cost), (most, dearest) = pairs[on[bend]], pairs[on[-1]]
        found = Knee(
            value=known[on[bend]][0].value,
            beyond=known[on[-1]][0].value,
            throughput_gain_fraction=most / gain - 1,
            latency_factor=dearest / cost,
            rule=KNEE_RULE,
        )
    best = {known[i][0].value for i in on}
    meeting = [point for point in points if point.meets]
    return ParetoResult(
        points=tuple(replace(p, on_frontier=p.value in best) for p in points),
        frontier=tuple(known[i][0].value for i in on),
        knee=found,
        best_within_limits=max(meeting, key=lambda p: p.output_tokens_per_s_per_gpu).value
        if meeting
        else None,
        interrupted=interrupted,
    )
