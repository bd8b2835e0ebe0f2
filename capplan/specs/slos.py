"""What is promised: limits on latency at percentiles, for a whole plan or one class of traffic."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, model_validator

from capplan import units
from capplan.errors import QuantityError
from capplan.specs.fields import Seconds, Spec, SpecError, shown
from capplan.specs.percentiles import DEFAULT_SLO_PERCENTILE


def _share(value: Any) -> Any:
    """`90 %` or 0.9."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise QuantityError(f"{shown(value)} is not a share", hint="write 0.9 or 90 %")
    return units.parse_fraction(str(value), positive=True)


def _limit(value: Any) -> Any:
    """A bare duration is a limit at the common percentile."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise QuantityError(f"{shown(value)} has no unit", hint="write it like `400 ms`")
    return {"limit": value} if isinstance(value, str) else value


Share = Annotated[float, BeforeValidator(_share, json_schema_input_type=str | float)]
PercentileNumber = Annotated[float, Strict(), Field(gt=0, lt=100, allow_inf_nan=False)]


class SloLimit(Spec):
    limit: Seconds
    percentile: PercentileNumber | None = Field(
        default=None, description="As `slos.percentile` has it."
    )


Limit = Annotated[SloLimit, BeforeValidator(_limit, json_schema_input_type=str | SloLimit)]


class Slos(Spec):
    """Limits on latency: each a duration, or a limit with a percentile of its own."""

    percentile: PercentileNumber = Field(
        default=DEFAULT_SLO_PERCENTILE, description="At which the limits hold, 0 to 100."
    )
    ttft: Limit | None = Field(default=None, description="Time to first token, queueing included.")
    tpot: Limit | None = Field(
        default=None, description="Time per output token, a mean of each request."
    )
    itl: Limit | None = Field(default=None, description="Gaps between tokens, over all of them.")
    e2e: Limit | None = Field(default=None, description="Arrival to last token.")
    goodput: Share | None = Field(
        default=None, description="Least share of the requests that meet all limits of a request."
    )

    @model_validator(mode="after")
    def _some_limit(self) -> Slos:
        if self.goodput is not None and not (self.ttft or self.tpot or self.e2e):
            raise SpecError("needs a limit to be met: ttft, tpot or e2e", "goodput")
        return self
