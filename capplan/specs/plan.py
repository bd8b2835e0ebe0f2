"""plan.yaml: one file for a question or a deployment, read by every command that takes `--plan`.

Quantities are texts with units (`400 ms`, `80 GiB`), engine settings bear the engine's own flag
names, and what is left out is a default that the answer lists under Assumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, model_validator

from capplan import units
from capplan.errors import QuantityError
from capplan.specs.clients import AdmissionSpec, ClientsSpec, FailureSpec, RouterSpec
from capplan.specs.documents import Document, read_yaml
from capplan.specs.fields import CountOrZero, Spec, SpecError, Text, shown, validate
from capplan.specs.growth import GrowthSpec
from capplan.specs.plan_engine import PlanEngine, VllmEngine
from capplan.specs.slos import Slos
from capplan.specs.traffic import TrafficSpec


def _price(value: Any) -> Any:
    if not isinstance(value, str):
        raise QuantityError(f"{shown(value)} is not an amount", hint="write it like `$2.50`")
    return units.parse_money(value, positive=True)


def _duration_or_zero(value: Any) -> Any:
    if not isinstance(value, str):
        raise QuantityError(f"{shown(value)} has no unit", hint="write it like `5 min`")
    return units.parse_duration(value)


Money = Annotated[float, BeforeValidator(_price, json_schema_input_type=str)]
Degree = Annotated[int, Strict(), Field(ge=1, le=1024)]
LongSecondsOrZero = Annotated[
    float, BeforeValidator(_duration_or_zero, json_schema_input_type=str), Field(le=31 * 86_400)
]


class PlanDeployment(Spec):
    """Replicas, and the parallel degrees of each."""

    replicas: Degree = 1
    tp: Degree = Field(default=1, description="Tensor parallel.")
    pp: Degree = Field(default=1, description="Pipeline stages.")
    dp: Degree = Field(default=1, description="Copies of the attention that share the experts.")
    ep: Degree = Field(
        default=1, description="Expert parallel: ranks that the experts are spread over."
    )
    dcp: Degree = Field(default=1, description="Decode context parallel.")
    spares: CountOrZero | None = Field(default=None, description="Replicas that carry no load.")
    price: Money | None = Field(default=None, description="Dollars a GPU-hour.")


class PlanSimulation(Spec):
    """How a plan is simulated; the traffic says how long and from which seed."""

    warmup: LongSecondsOrZero | None = Field(
        default=None, description="Requests that arrive before it do not count."
    )
    replications: Annotated[int, Strict(), Field(ge=1, le=1000)] = 1


# Checked when it is laid over the plan: see `plan_variants`.
Variants = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=40)], dict[str, Any]],
    Field(min_length=1, max_length=20),
]


class Plan(Spec):
    """A model on accelerators under an engine, its traffic, and what is promised."""

    title: Text | None = None
    note: Text | None = None
    model: Text = Field(description="A catalogue name, a YAML file, or a config.json.")
    hardware: Text = Field(description="A catalogue name or a YAML file.")
    deployment: PlanDeployment = Field(default_factory=PlanDeployment)
    engine: PlanEngine = Field(default_factory=VllmEngine)
    traffic: TrafficSpec = Field(default_factory=TrafficSpec)
    clients: ClientsSpec | None = None
    admission: AdmissionSpec | None = None
    router: RouterSpec | None = None
    failures: Annotated[tuple[FailureSpec, ...], Field(max_length=1000)] = ()
    slos: Slos | None = None
    growth: GrowthSpec | None = None
    simulation: PlanSimulation = Field(default_factory=PlanSimulation)
    variants: Variants | None = Field(
        default=None, description="By name: parts of a plan, laid over this one for a comparison."
    )

    @model_validator(mode="after")
    def _variants_are_variants(self) -> Plan:
        for name, parts in (self.variants or {}).items():
            if "variants" in parts:
                raise SpecError("has no variants of its own", "variants", name, "variants")
        return self


def read_plan(path: Path) -> tuple[Plan, Document]:
    """A plan and the document that it came from; CapplanError with file, line and column."""
    document = read_yaml(path)
    return validate(Plan, document), document
