"""Cost against latency over everything that was simulated."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from capplan.planner.bands import latency_band
from capplan.planner.fleet import fleet_of
from capplan.planner.sizing.banded import count_band, key_at
from capplan.planner.sizing.grid import rate_at
from capplan.planner.sizing.objectives import usd_per_hour
from capplan.planner.sizing.sample import Judged
from capplan.planner.sizing.search import Sized, e2e_of
from capplan.results.sizing import TradeOff


def trade_offs(sized: Sequence[Sized], need_per_s: float) -> tuple[TradeOff, ...]:
    """Fleets that nothing cheaper is quicker than, cheapest first: fewer requests a replica cost
    more and are served sooner."""
    found = [
        _trade_off(one, place, judged, need_per_s)
        for one in sized
        for (place, group), judged in sorted(one.judged.items())
        if judged.verdict == "holds" and _num_replicas(place, need_per_s) >= max(group, _least(one))
    ]
    found.sort(key=lambda each: (_bill(each), each.e2e_s))
    frontier: list[TradeOff] = []
    for each in found:
        if not frontier or each.e2e_s < frontier[-1].e2e_s:
            if frontier and _bill(frontier[-1]) == _bill(each):
                frontier.pop()
            frontier.append(each)
    return tuple(frontier)


def _bill(each: TradeOff) -> tuple[float, float]:
    """Dollars; GPUs where no price is known."""
    if each.usd_per_hour is None:
        return inf, each.num_gpus
    return each.usd_per_hour, 0.0


def _num_replicas(place: int, need_per_s: float) -> int:
    return max(1, int(-(-need_per_s // rate_at(place))))


def _least(one: Sized) -> int:
    return one.kind.num_replicas or 1


def _trade_off(one: Sized, place: int, judged: Judged, need_per_s: float) -> TradeOff:
    candidate, each = one.candidate, rate_at(place)
    num = _num_replicas(place, need_per_s)
    fleet = fleet_of(candidate.question, num, candidate.gpus_per_replica)
    values = {level.key: level.value_s for level in judged.levels}
    ttft_s, e2e_s = values.get("ttft") or 0.0, e2e_of(judged.levels, candidate)
    key, percentile = key_at(candidate, each), judged.levels[0].percentile
    latencies = {"ttft": ttft_s, "tpot": values.get("tpot"), "e2e": e2e_s}
    return TradeOff(
        hardware=one.kind.hardware,
        tp=one.kind.tp,
        pp=one.kind.pp,
        dp=one.kind.dp,
        ep=one.kind.ep,
        num_gpus=fleet.num_gpus,
        usd_per_hour=usd_per_hour(candidate.question, fleet),
        requests_per_s=each,
        ttft_s=ttft_s,
        tpot_s=values.get("tpot"),
        e2e_s=e2e_s,
        bands=(
            count_band(candidate, fleet.num_gpus, need_per_s, each),
            *(
                latency_band(name, f"P{percentile:g}", percentile, value, ttft_s, key)
                for name, value in latencies.items()
                if value
            ),
        ),
    )
