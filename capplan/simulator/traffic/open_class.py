"""Requests of one class that arrive by themselves, as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capplan.simulator.requests import Request
from capplan.simulator.traffic.arrivals import arrival_batches
from capplan.simulator.traffic.bodies import Bodies
from capplan.simulator.traffic.conversations import Sessions
from capplan.simulator.traffic.curves import RateCurve
from capplan.simulator.traffic.streams import stream
from capplan.specs.randomness import Arrivals

_new: Any = tuple.__new__  # half the time of a million requests goes without the named arguments


def independent(
    arrivals: Arrivals, curve: RateCurve | None, bodies: Bodies, seed: int, name: str
) -> Iterator[Request]:
    """Requests that follow from nothing but their number."""
    number = 0
    for times in arrival_batches(arrivals, curve, stream(seed, f"{name}arrivals")):
        batch = bodies.take(len(times))
        for at_s, body in zip(times, batch, strict=False):
            yield _new(Request, (f"{name}{number}", at_s, *body, ()))
            number += 1
        if len(batch) < len(times):
            return


def first_turns(
    arrivals: Arrivals, curve: RateCurve | None, sessions: Sessions, seed: int, name: str
) -> Iterator[Request]:
    """The beginnings of conversations."""
    for times in arrival_batches(arrivals, curve, stream(seed, f"{name}arrivals")):
        for at_s in times:
            request = sessions.begin(at_s)
            if request is None:
                return
            yield request
