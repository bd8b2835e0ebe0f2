"""Limits met or missed, goodput, and the verdict over all of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from capplan.formulas.statistics import percentile_of, percentile_rank, samples_needed
from capplan.results.simulate import Goodput, Latency, ServiceLevel
from capplan.simulator.latencies import NAMES, VALUES, enough, values_of
from capplan.simulator.requests import RequestRecord
from capplan.simulator.yardstick import Limit, Window, Yardstick, rate_of


def level_of(
    limit: Limit,
    found: Sequence[Latency],
    measured: Sequence[RequestRecord],
    num_failed: int,
    endless: bool,
) -> ServiceLevel:
    """One limit over the requests that count. `endless`: a load that no percentile describes."""
    name, percentile = NAMES[limit.key], limit.percentile
    if endless:
        return ServiceLevel(
            limit.key, name, percentile, limit.limit_s, None, None, False, "saturated"
        )
    latency = next(latency for latency in found if latency.key == limit.key)
    value: float | None = next(p.value_s for p in latency.percentiles if p.percentile == percentile)
    over, count = None, latency.num_samples
    if limit.key != "itl":
        values = values_of(limit.key, measured)
        above = len(values) - bisect_right(values, limit.limit_s)
        # Nobody waits for a TPOT that never began; but an answer that never came is late.
        count += num_failed
        over = (above + num_failed) / count if count else None
        if num_failed:
            place = percentile_rank(count, percentile)[1] if count else 0
            value = (
                percentile_of([*values, *[math.inf] * num_failed], percentile)
                if (place < len(values))
                else None
            )
    met, why = _judged(value, over, count, limit)
    return ServiceLevel(limit.key, name, percentile, limit.limit_s, value, over, met, why)


def _judged(
    value: float | None, over: float | None, count: int, limit: Limit
) -> tuple[bool | None, str | None]:
    """Met or not. With too few requests a miss can still be plain: too many are above."""
    allowed = 1 - limit.percentile / 100
    if enough(count, limit.percentile):
        if value is None:
            return False, f"{over or 0:.1%} are above it or without an answer"
        return value <= limit.limit_s, None
    why = f"needs {samples_needed(limit.percentile):,} requests, has {count:,}"
    if over is not None and over * count > 3 * max(1.0, count * allowed):
        return False, why
    return None, why


def goodput_of(windows: Sequence[Window], yardstick: Yardstick, endless: bool) -> Goodput:
    """Requests that meet every limit of a request; one without an answer meets none."""
    limits = [(VALUES[x.key], x.limit_s) for x in yardstick.limits if x.key != "itl"]
    good = total = 0
    for window in windows:
        for record in window.records:
            values = [(value_of(record), limit_s) for value_of, limit_s in limits]
            good += all(value is None or value <= limit_s for value, limit_s in values)
        total += sum(1 for at in window.run.arrivals if at >= window.start_s)
    elapsed = sum(window.elapsed_s for window in windows)
    share = good / total if total else 0.0
    target = yardstick.goodput_fraction
    met = None if target is None else share >= target and not endless
    return Goodput(rate_of(good, elapsed), share, target, met)


def verdict_of(
    end: str,
    endless: bool,
    levels: Sequence[ServiceLevel],
    goodput: Goodput | None,
    measured: Sequence[RequestRecord],
) -> str:
    """meets | misses | saturated | undecided | interrupted | no-requests."""
    if not measured:
        return "interrupted" if end == "interrupted" else "no-requests"
    verdicts = [level.met for level in levels]
    if goodput is not None and goodput.target_fraction is not None:
        verdicts.append(goodput.met)
    if end == "interrupted":
        return "interrupted"
    if endless:
        return "saturated"
    if end != "finished" or any(met is False for met in verdicts):
        return "misses"
    return "undecided" if any(met is None for met in verdicts) else "meets"
