"""Traffic in words: a line a class, and what was taken where the plan says nothing."""

from __future__ import annotations

from capplan.results.assumptions import Assumption
from capplan.simulator.traffic.replay.part import ReplayPart
from capplan.specs.rates import ConstantRate, Diurnal, Ramp, ServegenRates, Steps
from capplan.specs.traffic import (
    DEFAULT_NUM_REQUESTS,
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    DEFAULT_RATE_PER_S,
    TrafficClass,
    TrafficSpec,
)
from capplan.units import format_duration, format_rate, format_tokens

_TIME_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def class_text(part: TrafficClass, closed: bool) -> str:
    """One line for people.

    >>> class_text(TrafficClass(name="chat", rate="5/s", prompt=2000), closed=False)
    'chat: Poisson at 5.00 req/s, prompts 2000, outputs 256'
    """
    words = f"{part.name}: " if part.name else ""
    if part.trace is not None:
        return f"{words}replay of {part.trace.file}"
    if not closed:
        words += f"{_arrival_text(part)}, "
    if (shared := part.system_prompts) is not None:
        words += f"{shared.count:,} system prompts of {shared.tokens.text}, "
    prompt = part.prompt.text if part.prompt else str(DEFAULT_PROMPT_TOKENS)
    output = part.output.text if part.output else str(DEFAULT_OUTPUT_TOKENS)
    words += f"prompts {prompt}, outputs {output}"
    return f"{words}, {part.chat.turns.text} turns" if part.chat else words


def _arrival_text(part: TrafficClass) -> str:
    rate, pattern = part.rate, part.arrivals.text
    if pattern == "burst":
        return "all at once"
    if isinstance(rate, Ramp):
        ends = f"{format_rate(rate.start, 3)} to {format_rate(rate.end, 3)}"
        return f"{pattern} from {ends} over {format_duration(rate.over)}"
    if isinstance(rate, Steps):
        return f"{pattern} in {len(rate.rates)} steps of {format_duration(rate.each)}"
    if isinstance(rate, Diurnal):
        return f"{pattern} over the day, {format_rate(rate.mean, 3)} on average"
    if isinstance(rate, ServegenRates):
        return f"at the rates of {rate.file}"
    per_s = (rate.rate if rate else DEFAULT_RATE_PER_S) * part.peak_factor
    return f"{pattern} at {format_rate(per_s, 3)}"


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


def of_trace(part: ReplayPart) -> list[Assumption]:
    """How the file was understood, where the plan does not say."""
    found = []
    trace, file = part.trace, part.file
    if trace.format == "auto":
        found.append(Assumption(f"format of {trace.file}", file.format, "trace.format"))
    if part.has_own_times and trace.time_unit == "auto" and file.time_unit is not None:
        unit = _TIME_UNITS.get(file.time_unit, "times of day, UTC where no zone stands")
        found.append(Assumption(f"`{file.time_field}`", unit, "trace.time_unit"))
    if part.has_own_times and file.format == "mooncake" and not trace.spread:
        found.append(Assumption("requests of one tick", "all at once", "trace.spread: 3s"))
    if file.estimates_tokens:
        number = f"{trace.characters_per_token:g} characters each"
        found.append(Assumption("tokens of texts", number, "trace.characters_per_token"))
    return found
