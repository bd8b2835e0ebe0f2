"""Traffic from the section `traffic:` of a plan."""

from __future__ import annotations

from pathlib import Path

from capplan.simulator.traffic.drawn import DrawnPart
from capplan.simulator.traffic.replay.part import ReplayPart
from capplan.simulator.traffic.traffic import ClosedLoop, Limits, Traffic, TrafficPart
from capplan.simulator.traffic.unsaid import unsaid
from capplan.specs.rates import ServegenRates, Steps
from capplan.specs.traffic import DEFAULT_NUM_REQUESTS, TrafficClass, TrafficSpec


def requests_of(
    spec: TrafficSpec, seed: int | None = None, folder: Path = Path(), from_s: float = 0.0
) -> Traffic:
    """The traffic that a plan describes; names of files count from `folder`.

    `seed` stands in for the plan's own; curves over time begin at `from_s`. Raises CapplanError
    where a file is at fault.
    """
    seed = spec.seed if seed is None else seed
    closed = spec.closed_loop
    think_time = closed.think_time if closed else None
    if closed and spec.chat:
        think_time = spec.chat.think_time
    classes = spec.parts
    num_requests = _num_requests(spec, classes)
    limits = Limits(num_requests if len(classes) == 1 else None, spec.duration)
    parts: list[TrafficPart] = []
    for part in classes:
        name = f"{part.name}/" if part.name else ""
        if part.trace is not None:
            parts.append(
                ReplayPart(part, part.trace, name, seed, folder, think_time, limits, from_s)
            )
        else:
            parts.append(DrawnPart(part, name, seed, folder, think_time, limits, from_s))
    return Traffic(
        parts,
        closed_loop=ClosedLoop(closed.users, closed.ramp_up) if closed else None,
        num_requests=num_requests,
        duration_s=spec.duration,
        assumptions=unsaid(spec, classes, num_requests),
    )


def _num_requests(spec: TrafficSpec, classes: tuple[TrafficClass, ...]) -> int | None:
    """What is given; the default only where nothing else ends the run."""
    if spec.requests is not None or spec.duration is not None:
        return spec.requests
    ends = all(part.trace or isinstance(part.rate, Steps | ServegenRates) for part in classes)
    return None if ends else DEFAULT_NUM_REQUESTS
