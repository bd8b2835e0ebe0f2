"""What plots show: the state over time, and whole distributions."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.formulas.statistics import percentile_of
from capplan.results.simulate import Curves, SeriesPoint, SimulateResult
from capplan.simulator.gap_sample import GapSample, bucket_start_s
from capplan.simulator.latencies import NAMES, values_of
from capplan.simulator.run_data import RunData
from capplan.simulator.yardstick import Yardstick

MAX_POINTS = 240
_SHARES = tuple(i / 200 for i in range(200)) + tuple(1 - 0.005 * 0.7**i for i in range(1, 16))


def curves(run: RunData, result: SimulateResult, yardstick: Yardstick) -> Curves:
    """Of one run. Requests count as in the result; gaps are those of the whole run."""
    measured = [r for r in run.records if r.arrival_s >= result.warmup_s]
    found = [(NAMES[key], _distribution(values_of(key, measured))) for key in ("ttft", "e2e")]
    gaps = GapSample()
    for watch in run.statistics:
        gaps.extend(watch.gap_sample)
    found.insert(1, (NAMES["itl"], _gap_distribution(gaps)))
    return Curves(
        series=_series(run, yardstick),
        distributions=tuple(found),
        last_arrival_s=run.last_arrival_s,
        warmup_s=result.warmup_s,
    )


def _distribution(values: Sequence[float]) -> tuple[tuple[float, float], ...]:
    if not values:
        return ()
    return tuple((percentile_of(values, 100 * share), share) for share in (*_SHARES, 1.0))


def _gap_distribution(gaps: GapSample) -> tuple[tuple[float, float], ...]:
    counts = gaps.histogram()
    total, below = gaps.count, 0
    found = []
    for bucket in sorted(counts):
        found.append((bucket_start_s(bucket), below / total))
        below += counts[bucket]
        found.append((bucket_start_s(bucket + 1), below / total))
    return tuple(found)


def _series(run: RunData, yardstick: Yardstick) -> tuple[SeriesPoint, ...]:
    """Means over equal intervals, summed over replicas (shares: their mean)."""
    end_s = run.end_s
    if end_s <= 0:
        return ()
    num_points = MAX_POINTS
    blocks = yardstick.usable_blocks * run.num_replicas
    points = []
    before = [watch.until(0.0) for watch in run.statistics]
    for i in range(1, num_points + 1):
        time_s = end_s * i / num_points
        now = [watch.until(time_s) for watch in run.statistics]
        parts = [a.minus(b) for a, b in zip(now, before, strict=True)]
        step_s = end_s / num_points
        points.append(
            SeriesPoint(
                time_s=time_s,
                num_running=sum(part.running_s for part in parts) / step_s,
                num_waiting=sum(part.waiting_s for part in parts) / step_s,
                kv_used_fraction=sum(part.block_s for part in parts) / step_s / blocks,
            )
        )
        before = now
    return tuple(points)
