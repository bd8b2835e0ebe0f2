"""Requests of one class that arrive by themselves, as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capplan.simulator.requests import Request
from capplan.simulator.traffic.bodies import Bodies
from capplan.simulator.traffic.conversations import Sessions

_new: Any = tuple.__new__  # half the time of a million requests goes without the named arguments


def independent(batches: Iterator[list[float]], bodies: Bodies, name: str) -> Iterator[Request]:
    """Requests that follow from nothing but their number."""
    number = 0
    for times in batches:
        batch = bodies.take(len(times))
        for at_s, body in zip(times, batch, strict=False):
            yield _new(Request, (f"{name}{number}", at_s, *body, ()))
            number += 1
        if len(batch) < len(times):
            return


def first_turns(batches: Iterator[list[float]], sessions: Sessions) -> Iterator[Request]:
    """The beginnings of conversations."""
    for times in batches:
        for at_s in times:
            request = sessions.begin(at_s)
            if request is None:
                return
            yield request
