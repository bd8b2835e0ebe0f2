"""Points of one kind of replica: groups of it at rates of the grid, as long as they need to be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from capplan.planner.serving import Serving
from capplan.planner.sizing.demand import Demand
from capplan.planner.sizing.grid import rate_at
from capplan.planner.sizing.point import Point
from capplan.planner.sizing.run_length import RunLength
from capplan.planner.sizing.sample import Sample
from capplan.planner.sizing.served import ServedReplica
from capplan.planner.sizing.store import NoPoints, Points, name_of
from capplan.simulator.fleet.settings import FleetSettings, Routing

START_REQUESTS = 20  # of each replica, before any count
MORE_THAN_NEEDED = 1.25  # requests beyond those with which a percentile is a number
LEAST_SAMPLES = 500
LONGER = 3  # a run that left it open goes on to so many times the requests
MAX_REQUESTS = 100_000


@dataclass(frozen=True)
class Probe:
    """Points of one kind of replica under one traffic."""

    serving: Serving
    replica: ServedReplica
    demand: Demand
    routing: Routing
    num_samples: int  # with which the highest percentile is a number
    seed: int
    points: Points = field(default_factory=NoPoints)
    with_gaps: bool = False  # between tokens
    # The point that was simulated last, by its rate and size: it may be asked to go on.
    _last: dict[tuple[int, int], Point] = field(default_factory=dict, compare=False)
    _known_in_flight: dict[int, float] = field(default_factory=dict, compare=False)

    def sample(self, place: int, num_replicas: int, *, longer: bool) -> Sample:
        """At `rate_at(place)` requests a second for each of so many replicas."""
        length = self.length(place, num_replicas, longer=longer)
        # Those that count are followed by as many as a longer run has.
        most = self.length(place, num_replicas, longer=True).total
        size = f"{length.warmup} {length.total} {most}"
        name = name_of((self._identity, f"{place} {num_replicas} {size} {self.seed}"))
        found = self.points.get(name)
        if found is None:
            found = self._point(place, num_replicas).sample(length.warmup, length.total)
            self.points.put(name, found)
        return found

    def length(self, place: int, num_replicas: int, *, longer: bool) -> RunLength:
        """Of the run at that rate and size."""
        return RunLength.of(
            self._in_flight(place) * num_replicas,
            self.num_counted * (LONGER if longer else 1),
            start=START_REQUESTS * num_replicas,
            most=MAX_REQUESTS,
        )

    @property
    def num_counted(self) -> int:
        """Requests that count at a point, unless it is a longer run."""
        samples = math.ceil(self.num_samples * MORE_THAN_NEEDED)
        return max(LEAST_SAMPLES, samples, self.demand.least_requests)

    def _point(self, place: int, num_replicas: int) -> Point:
        key = (place, num_replicas)
        if key not in self._last:
            most = self.length(place, num_replicas, longer=True).total
            factor = rate_at(place) * num_replicas / self.demand.peak_per_s
            self._last.clear()
            self._last[key] = Point(
                self.serving,
                lambda total: self.demand.traffic(factor, total, self.seed),
                FleetSettings(num_replicas, routing=self.routing, seed=self.seed),
                self.demand.kind_of,
                most,
                with_gaps=self.with_gaps,
            )
        return self._last[key]

    def _in_flight(self, place: int) -> float:
        """Requests in one replica, on average."""
        known = self._known_in_flight
        if place not in known:
            known[place] = self.replica.in_flight(rate_at(place))
        return known[place]

    @cached_property
    def _identity(self) -> str:
        """Everything that a point depends on beside its rate and size."""
        serving = self.serving
        deployment = serving.deployment
        parts = (
            deployment.model.model_dump_json(),
            deployment.hardware.model_dump_json(),
            deployment.engine.profile.model_dump_json(),
            repr(serving.config),
            repr(serving.scheduler),
            repr(serving.scheduler_flags),
            repr((deployment.tp, deployment.engine.pp, deployment.engine.dp, serving.ep)),
            repr((deployment.engine.dtype, deployment.engine.kv_dtype)),
            repr(serving.overheads),
            repr(replace(serving.calibration, own=None)),
            repr(self.routing),
            self.demand.identity,
            "with gaps" if self.with_gaps else "",
        )
        return name_of(parts)
