"""What is taken where a plan says nothing about its traffic."""

from __future__ import annotations

from capplan.results.assumptions import Assumption
from capplan.specs.rates import ConstantRate, ServegenRates
from capplan.specs.traffic import (
    DEFAULT_NUM_REQUESTS,
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    DEFAULT_RATE_PER_S,
    TrafficClass,
    TrafficSpec,
)
from capplan.units import format_rate, format_tokens


def unsaid(
    spec: TrafficSpec, classes: tuple[TrafficClass, ...], num_requests: int | None
) -> tuple[Assumption, ...]:
    """The defaults that a plan leaves in place."""
    found: list[Assumption] = []
    for part in classes:
        whose = f" of {part.name}" if part.name else ""
        if part.trace is None:
            found += _of_class(part, whose, spec.closed_loop is not None)
    if spec.requests is None and num_requests == DEFAULT_NUM_REQUESTS:
        found.append(Assumption("requests", format_tokens(DEFAULT_NUM_REQUESTS), "--requests"))
    if "seed" not in spec.model_fields_set:
        found.append(Assumption("seed", str(spec.seed), "--seed"))
    return tuple(found)


def _of_class(part: TrafficClass, whose: str, closed: bool) -> list[Assumption]:
    found = []
    at_once = part.arrivals.kind == "burst" and part.arrivals.size is None
    if not closed and not at_once:
        if part.rate is None:
            rate = format_rate(DEFAULT_RATE_PER_S)
            found.append(Assumption(f"arrival rate{whose}", rate, "--qps"))
        if "arrivals" not in part.model_fields_set and not isinstance(part.rate, ServegenRates):
            found.append(Assumption(f"arrivals{whose}", "Poisson", "--arrivals"))
        if "peak_factor" not in part.model_fields_set and isinstance(part.rate, ConstantRate):
            found.append(Assumption(f"peak over mean rate{whose}", "1", "--peak-factor"))
    if part.prompt is None:
        tokens = f"{format_tokens(DEFAULT_PROMPT_TOKENS)} tokens"
        found.append(Assumption(f"prompts{whose}", tokens, "--prompt-tokens"))
    if part.output is None:
        tokens = f"{format_tokens(DEFAULT_OUTPUT_TOKENS)} tokens"
        found.append(Assumption(f"outputs{whose}", tokens, "--output-tokens"))
    return found
