"""How often requests arrive: a rate, or its curve over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, WithJsonSchema, model_validator

from capplan import units
from capplan.errors import QuantityError
from capplan.specs.fields import Spec, SpecError, Text, shown

MAX_RATE_PER_S = 1e7
MAX_SPAN_S = 1000 * 86_400.0
DAY_S = 86_400.0


def quantity(
    parse: Callable[[str], float], example: str, least: float, most: float
) -> Callable[[Any], float]:
    """A validator of texts like ``example``; a bare number counts where the parser takes one."""

    def validate(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise QuantityError(f"{shown(value)} is no quantity", hint=f"write it like `{example}`")
        found = parse(str(value))
        if not least <= found <= most:
            raise QuantityError(
                f"{shown(value)} is out of range", hint=f"write it like `{example}`"
            )
        return found

    return validate


_rate = quantity(units.parse_rate, "100/s or 5M/day", 1e-9, MAX_RATE_PER_S)
_rate_or_zero = quantity(units.parse_rate, "100/s or 0", 0, MAX_RATE_PER_S)
_span = quantity(units.parse_duration, "10min", 1e-6, MAX_SPAN_S)
_span_or_zero = quantity(units.parse_duration, "30s", 0, MAX_SPAN_S)
# What a file holds, for editors that know the schema.
_RATE_TEXT = WithJsonSchema({"type": ["string", "number"], "examples": ["100/s", "5M/day"]})
_SPAN_TEXT = WithJsonSchema({"type": ["string", "number"], "examples": ["30 s", "10 min"]})
RatePerS = Annotated[float, BeforeValidator(_rate), _RATE_TEXT]
RateOrZero = Annotated[float, BeforeValidator(_rate_or_zero), _RATE_TEXT]
Span = Annotated[float, BeforeValidator(_span), _SPAN_TEXT]
SpanOrZero = Annotated[float, BeforeValidator(_span_or_zero), _SPAN_TEXT]
Positive = Annotated[float, Strict(), Field(gt=0, le=1e6, allow_inf_nan=False)]
Factor = Annotated[float, Strict(), Field(ge=1, le=24, allow_inf_nan=False)]
Weight = Annotated[float, Strict(), Field(ge=0, le=1e12, allow_inf_nan=False)]


class ConstantRate(Spec):
    kind: Literal["constant"] = "constant"
    rate: RatePerS


class Ramp(Spec):
    """The rate rises (or falls) in a straight line, then stays."""

    kind: Literal["ramp"]
    start: RateOrZero = 0.0
    end: RatePerS
    over: Span


class Steps(Spec):
    """A staged load test: each rate for the same time, then no more requests."""

    kind: Literal["steps"]
    rates: Annotated[tuple[RateOrZero, ...], Field(min_length=1, max_length=10_000)]
    each: Span

    @model_validator(mode="after")
    def _some_traffic(self) -> Steps:
        if not any(self.rates):
            raise SpecError("are all zero", "rates")
        return self


class Diurnal(Spec):
    """A day, again and again: one smooth peak, or what arrived in each part of a measured day.

    `peak_factor` is the peak over the mean of the day, `start_at` the time of day at which the
    simulation begins.
    """

    kind: Literal["diurnal"]
    mean: RatePerS
    peak_factor: Factor = 2.0
    peak_at: SpanOrZero = 15 * 3600.0
    start_at: SpanOrZero = 0.0
    day: Span = DAY_S
    weights: Annotated[tuple[Weight, ...], Field(max_length=10_000)] = ()

    @model_validator(mode="after")
    def _one_shape(self) -> Diurnal:
        if self.weights and not any(self.weights):
            raise SpecError("are all zero", "weights")
        if self.weights and {"peak_factor", "peak_at"} & self.model_fields_set:
            raise SpecError("already say where the peak is", "weights", hint="leave out `peak_...`")
        return self


class ServegenRates(Spec):
    """Rates of many clients by time window, each with its own burstiness: ServeGen's format."""

    kind: Literal["servegen"]
    file: Text
    clients: tuple[Text, ...] = ()  # empty: all
    factor: Positive = 1.0
    start_at: SpanOrZero = 0.0


def _plain(value: Any) -> Any:
    """A rate without a curve is a constant one."""
    if isinstance(value, (dict, Spec)):
        return value
    return {"kind": "constant", "rate": _rate(value)}


Curve = ConstantRate | Ramp | Steps | Diurnal | ServegenRates
Rate = Annotated[
    Annotated[Curve, Field(discriminator="kind")],
    BeforeValidator(_plain, json_schema_input_type=str | float | Curve),
]
