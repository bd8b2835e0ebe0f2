"""How many GPUs other rates need, from what one replica of the chosen plan sustains."""

from __future__ import annotations

from itertools import pairwise

from capplan.planner.sizing.robustness import in_proportion
from capplan.planner.sizing.sustained import replicas_at
from capplan.results.gpus import GpusResult
from capplan.results.traffic_curve import TrafficCurve, TrafficPoint

BEYOND = 2.0  # times today's rate
MOST_STEPS = 400  # of many more small steps, so many even ones


def traffic_curve(result: GpusResult, arrival_rate_per_s: float) -> TrafficCurve | None:
    """From no traffic to twice today's, or to the last month's; None where nothing was simulated.

    As for the months to come: each replica sustains what it does in today's fleet.
    """
    sizing, sustained = result.sizing, result.sustained
    if sizing is None or sustained is None or sizing.model_band is None or not result.num_replicas:
        return None
    each = sustained.requests_per_s
    band, gpus = sizing.model_band, (result.num_gpus or 0) // result.num_replicas
    ratios = (1.0, max(1.0, band.high_ratio), min(1.0, band.low_ratio))
    last = max([BEYOND * arrival_rate_per_s, *(1.05 * m.arrival_rate_per_s for m in sizing.months)])
    edges = [0.0, last]
    if sum(last / (each * ratio) for ratio in ratios) <= MOST_STEPS:
        for ratio in ratios:
            edges += [each * ratio * k for k in range(1, int(last / (each * ratio)) + 1)]
    else:
        edges += [last * k / MOST_STEPS for k in range(1, MOST_STEPS)]
    today = replicas_at(arrival_rate_per_s, each)
    points = []
    for start, end in pairwise(sorted(set(edges))):
        middle = (start + end) / 2  # up to and with the end of a step its replicas suffice
        num = in_proportion(replicas_at(middle, each), result.num_replicas, today)
        pessimistic, optimistic = (replicas_at(middle, each * ratio) for ratio in ratios[1:])
        counts = (num, min(num, pessimistic), max(num, optimistic))
        points += [TrafficPoint(rate, *(gpus * count for count in counts)) for rate in (start, end)]
    return TrafficCurve(tuple(points), band, each, gpus)
