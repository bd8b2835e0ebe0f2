"""Means of a stated traffic, for bounds; simulations draw from the whole of it."""

from __future__ import annotations

from capplan.specs.length_files import LengthFile
from capplan.specs.lengths import Lengths
from capplan.specs.rates import ConstantRate
from capplan.specs.traffic import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    TrafficSpec,
)


def rate_per_s(traffic: TrafficSpec) -> float | None:
    """Requests a second at the peak; None where it is a curve, a trace or a closed loop."""
    total = 0.0
    for part in traffic.parts:
        if not isinstance(part.rate, ConstantRate) or part.trace is not None:
            return None
        total += part.rate.rate * part.peak_factor
    return total or None


def mean_lengths(traffic: TrafficSpec) -> tuple[float, float]:
    """Mean prompt and output tokens, classes weighted by their rates."""
    weights, prompts, outputs = 0.0, 0.0, 0.0
    for part in traffic.parts:
        weight = part.rate.rate if isinstance(part.rate, ConstantRate) else 1.0
        prompt = _mean(part.prompt, DEFAULT_PROMPT_TOKENS)
        if part.system_prompts is not None:
            prompt += part.system_prompts.share * _mean(part.system_prompts.tokens, 0)
        weights += weight
        prompts += weight * prompt
        outputs += weight * _mean(part.output, DEFAULT_OUTPUT_TOKENS)
    return prompts / weights, outputs / weights


def _mean(lengths: Lengths | LengthFile | None, default: float) -> float:
    return lengths.mean_tokens if isinstance(lengths, Lengths) else float(default)
