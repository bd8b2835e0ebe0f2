"""Traffic from the section `traffic:` of a plan."""

from __future__ import annotations

from pathlib import Path

from capplan.errors import CapplanError
from capplan.results.assumptions import Assumption
from capplan.simulator.traffic.drawn import DrawnPart
from capplan.simulator.traffic.traffic import ClosedLoop, Traffic, TrafficPart
from capplan.specs.rates import ConstantRate, Steps
from capplan.specs.traffic import (
    DEFAULT_NUM_REQUESTS,
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    DEFAULT_RATE_PER_S,
    TrafficClass,
    TrafficSpec,
)
from capplan.units import format_rate, format_tokens


def requests_of(spec: TrafficSpec, seed: int | None = None, folder: Path = Path()) -> Traffic:
    """The traffic that a plan describes; names of files count from `folder`.

    `seed` stands in for the plan's own. Raises CapplanError where a file is at fault.
    """
    seed = spec.seed if seed is None else seed
    if any(part.trace for part in spec.classes or (spec,)):
        raise CapplanError("traces cannot be replayed yet")
    closed = spec.closed_loop
    think_time = closed.think_time if closed else None
    classes: tuple[TrafficClass, ...] = spec.classes or (spec,)
    names = [f"{part.name}/" if part.name else "" for part in classes]
    parts: list[TrafficPart] = [
        DrawnPart(part, name, seed, folder, think_time)
        for part, name in zip(classes, names, strict=True)
    ]
    return Traffic(
        parts,
        closed_loop=ClosedLoop(closed.users, closed.think_time.mean_s, closed.ramp_up)
        if closed
        else None,
        num_requests=_num_requests(spec, classes),
        duration_s=spec.duration,
        assumptions=_unsaid(spec, classes),
    )


def _num_requests(spec: TrafficSpec, classes: tuple[TrafficClass, ...]) -> int | None:
    """What is given; the default only where nothing else ends the run."""
    if spec.requests is not None or spec.duration is not None:
        return spec.requests
    ends = all(part.trace is not None or isinstance(part.rate, Steps) for part in classes)
    return None if ends else DEFAULT_NUM_REQUESTS


def _unsaid(spec: TrafficSpec, classes: tuple[TrafficClass, ...]) -> tuple[Assumption, ...]:
    found: list[Assumption] = []
    for part in classes:
        whose = f" of {part.name}" if part.name else ""
        timed = part.trace is not None or spec.closed_loop is not None
        if part.rate is None and not timed and part.arrivals.kind != "burst":
            rate = format_rate(DEFAULT_RATE_PER_S)
            found.append(Assumption(f"arrival rate{whose}", rate, "--qps"))
        if not timed and "arrivals" not in part.model_fields_set:
            found.append(Assumption(f"arrivals{whose}", "Poisson", "--arrivals"))
        if part.peak_factor == 1 and isinstance(part.rate, ConstantRate):
            found.append(Assumption(f"peak over mean rate{whose}", "1", "--peak-factor"))
        if part.prompt is None and part.trace is None:
            tokens = f"{format_tokens(DEFAULT_PROMPT_TOKENS)} tokens"
            found.append(Assumption(f"prompts{whose}", tokens, "--prompt-tokens"))
        if part.output is None and part.trace is None:
            tokens = f"{format_tokens(DEFAULT_OUTPUT_TOKENS)} tokens"
            found.append(Assumption(f"outputs{whose}", tokens, "--output-tokens"))
    if _num_requests(spec, classes) == DEFAULT_NUM_REQUESTS and spec.requests is None:
        found.append(Assumption("requests", format_tokens(DEFAULT_NUM_REQUESTS), "--requests"))
    if "seed" not in spec.model_fields_set:
        found.append(Assumption("seed", str(spec.seed), "--seed"))
    return tuple(found)
