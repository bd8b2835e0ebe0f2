"""The front door: clients and replicas in, what became of everybody out."""

from __future__ import annotations

from collections.abc import Iterable

from capplan.simulator.fleet import patient
from capplan.simulator.fleet.driver import Driver
from capplan.simulator.fleet.records import FleetOutcome
from capplan.simulator.fleet.server import MakeReplica
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.sources import FollowedTraffic, OpenTraffic, Source
from capplan.simulator.requests import Request
from capplan.simulator.traffic.traffic import Traffic

ONE_REPLICA = FleetSettings()


def simulate_fleet(
    traffic: Source | Traffic | Iterable[Request],
    make: MakeReplica,
    settings: FleetSettings = ONE_REPLICA,
) -> FleetOutcome:
    """Simulate clients, router and replicas until every request has ended.

    `traffic` is the traffic of a plan, or a `ClosedLoop` over requests, or requests in order of
    arrival. `make` builds a replica that
    hands its finished requests to the function that it is given.
    """
    source: Source
    if isinstance(traffic, Traffic):
        follows = traffic.has_follow_ups
        source = FollowedTraffic(traffic) if follows else OpenTraffic(traffic.requests())
    else:
        source = traffic if isinstance(traffic, Source) else OpenTraffic(traffic)
    if isinstance(source, OpenTraffic) and patient.can_run(source, settings):
        return patient.run(source, make, settings)
    return Driver(source, make, settings).run()
