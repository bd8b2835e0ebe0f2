"""A calibration: what `capplan calibrate` learnt from one's own servers, as a YAML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from capplan.specs.documents import read_yaml
from capplan.specs.error_bands import Figure, Ratio
from capplan.specs.fields import Count, Flag, Spec, SpecError, Text, validate

# Beyond these no server is measured: a factor of three is another machine.
Factor = Annotated[float, Strict(), Field(ge=0.33, le=3.01, allow_inf_nan=False)]
LatencyFactor = Annotated[float, Strict(), Field(ge=0.049, le=20.1, allow_inf_nan=False)]
Microseconds = Annotated[float, Strict(), Field(ge=-100_000, le=100_000, allow_inf_nan=False)]
Share = Annotated[float, Strict(), Field(ge=0, le=1000, allow_inf_nan=False)]


class Fitted(Spec):
    """A value with the range that the data leave it; not identified: mostly the prior's."""

    low: float
    high: float
    identified: Flag


class FittedFactor(Fitted):
    value: Factor


class FittedLatency(Fitted):
    value: LatencyFactor


class FittedTime(Fitted):
    value: Microseconds


class CalibrationErrors(Spec):
    """Median |predicted / measured - 1| over the runs, each figure for itself."""

    before: Share
    after: Share
    left_out: Share  # of each run predicted by a fit to all the others


class OwnErrorsSpec(Spec):
    """Between which factors measured / predicted lay: runs left out, at one kind of load."""

    figure: Figure
    loaded: Flag  # at 85 % of what the server can carry, or above
    runs: Count
    low: Ratio
    high: Ratio


class CalibrationSpec(Spec):
    """What the factors were fitted on, and how well they did on runs that were left out."""

    schema_: Literal["capplan.calibration/1"] = Field(alias="schema")
    hardware: Text
    engine: Literal["vllm", "sglang", "tensorrt-llm", "tgi", "turbomind"]
    models: tuple[Text, ...]
    tp: tuple[Count, ...]
    runs: Count
    compute: FittedFactor
    bandwidth: FittedFactor
    collective_latency: FittedLatency
    step_us: FittedTime
    sequence_us: FittedTime
    errors: CalibrationErrors
    bands: tuple[OwnErrorsSpec, ...] = ()  # older files have none

    @model_validator(mode="after")
    def _ordered(self) -> CalibrationSpec:
        for name in PARAMETERS:
            fitted = getattr(self, name)
            if not fitted.low <= fitted.value <= fitted.high:
                raise SpecError("lies outside `low` to `high`", name, "value")
        return self


PARAMETERS = ("compute", "bandwidth", "collective_latency", "step_us", "sequence_us")


def load_calibration(path: Path) -> CalibrationSpec:
    """Raises CapplanError with the place of a fault."""
    return validate(CalibrationSpec, read_yaml(path))


def yaml_text(spec: CalibrationSpec) -> str:
    """The file; it loads back to an equal specification."""
    data = spec.model_dump(mode="json", by_alias=True)
    lines = ["# Written by `capplan calibrate`; given to a command with --calibration FILE."]
    lines += [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
    return "\n".join(lines) + "\n"
