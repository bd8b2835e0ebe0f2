"""The highest rate that a replica sustains within all limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from capplan.planner.sizing.grid import highest, rate_at
from capplan.planner.sizing.limits import Promise
from capplan.planner.sizing.probe import Probe
from capplan.planner.sizing.sample import Judged, judge
from capplan.results.sizing import SizedPoint, Sustained

# Replicas that are simulated together. The router evens out what arrives at each; eight get most
# of what any number gets (docs/planner.md), so that larger fleets are on the safe side.
GROUP = 8
# Up to so many are simulated as they are. More, but fewer than a group, carry no more than the
# group does: nobody has to try a number of which the group already says that it is not enough.
_SMALL = 4
# Below this share of the bound a rate is taken to pass; where the search ends there, the next.
SURELY = (0.7, 0.35, 0.1, 0.0)
SLACK = 1.05  # bounds speak of means; a simulation of fixed lengths may touch them


@dataclass
class Curve:
    """Points of one kind of replica, judged by one promise."""

    probe: Probe
    promise: Promise
    kinds: Sequence[str]
    most_per_s: float  # the bound of one replica
    bound_limit: str  # and the limit that sets it
    judged: dict[tuple[int, int], Judged] = field(default_factory=dict)
    points: list[SizedPoint] = field(default_factory=list)
    num_requests: int = 0

    def sustained(self, num_replicas: int, useful_per_s: float = 0.0) -> Sustained | None:
        """Of one replica in a fleet of so many; None where no rate of use passes.

        A search ends early when no rate from ``useful_per_s`` on can pass any more.
        """
        group = min(num_replicas, GROUP)

        def passes(place: int, *, surely: float) -> bool:
            rate = rate_at(place)
            if rate > self.most_per_s * SLACK:
                return False
            if rate < self.most_per_s * surely:
                return True
            return self.at(place, group).verdict == "holds"

        def hopeless(place: int) -> bool:
            return rate_at(place) < useful_per_s

        found = 0
        for surely in SURELY:
            found = highest(partial(passes, surely=surely), hopeless)
            if rate_at(found) >= self.most_per_s * surely:
                break
        if not found or rate_at(found) < useful_per_s:
            return None
        return self._result(found, group)

    def at(self, place: int, group: int) -> Judged:
        """The verdict at a rate: by intervals, and after a longer run as it stands."""
        key = (place, group)
        if key not in self.judged:
            for longer in (False, True):
                sample = self.probe.sample(place, group, longer=longer)
                num = self.probe.length(place, group, longer=longer).total
                self.num_requests += num
                found = judge(sample, self.promise, self.kinds, by_interval=not longer)
                if found.verdict != "undecided":
                    break
            self.judged[key] = found
            holds = found.verdict == "holds"
            decisive = max(found.levels, key=lambda level: level.used_fraction)
            self.points.append(SizedPoint(rate_at(place), group, num, longer, holds, decisive))
        return self.judged[key]

    def _result(self, place: int, group: int) -> Sustained:
        here = self.at(place, group)
        beyond = self.judged.get((place + 1, group))
        return Sustained(
            requests_per_s=rate_at(place),
            num_replicas=group,
            binding=self.bound_limit if beyond is None else beyond.binding,
            fails_at_per_s=rate_at(place + 1),
            levels=here.levels,
            goodput_fraction=here.goodput_fraction,
            num_points=len(self.judged),
            num_requests=self.num_requests,
            points=tuple(self.points),
        )


def replicas_for(
    curve: Curve, demand_per_s: float, most: float = inf
) -> tuple[int, Sustained] | None:
    """The fewest replicas whose sustained rates together cover the demand; None above ``most``.

    What n replicas sustain does not depend on the demand, so that more of it never needs fewer.
    """
    if curve.most_per_s <= 0:
        return None
    num = replicas_at(demand_per_s, curve.most_per_s * SLACK)
    while num <= most:
        if _SMALL < num < GROUP:
            group = curve.sustained(GROUP, demand_per_s / most)
            if group is None:
                return None
            num = max(num, min(GROUP, whole_replicas(demand_per_s / group.requests_per_s)))
        # Fewer than a group are of use only if so many are enough.
        useful = demand_per_s / (num if num < GROUP else most)
        found = curve.sustained(num, useful)
        if found is not None:
            needed = whole_replicas(demand_per_s / found.requests_per_s)
            if needed <= num:
                return num, found
            if num >= GROUP:
                return (needed, found) if needed <= most else None
        elif num >= GROUP:
            return None
        num += 1
    return None


def replicas_at(rate_per_s: float, each_per_s: float) -> int:
    """The fewest that carry a rate, each so much."""
    return max(1, whole_replicas(rate_per_s / each_per_s))


def whole_replicas(value: float) -> int:
    """Rounded upward, but for what rounding of the division made of a whole number."""
    return -int(-(value - 1e-9) // 1)
