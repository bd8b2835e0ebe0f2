"""`.capplan.yaml`: what a repository's manifests do not say, and what `capplan check` may pass."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from capplan.specs.clients import AdmissionSpec, ClientsSpec, RouterSpec
from capplan.specs.fields import Date, Fraction, Spec, Text
from capplan.specs.slos import Slos
from capplan.specs.traffic import TrafficSpec

Severity = Literal["error", "warning", "info"]
Usd = Annotated[float, Strict(), Field(gt=0, le=1e9, allow_inf_nan=False)]
RuleId = Annotated[str, Field(pattern=r"^CP[0-9]{3}$")]


class DeploymentSection(Spec):
    """Of deployments by this name (`chat`, `chat-*`) or in files by this path (`prod/*.yaml`)."""

    model: Text | None = None
    hardware: Text | None = None
    engine_version: Text | None = None
    replicas: Annotated[int, Strict(), Field(ge=1, le=100_000)] | None = None
    traffic: TrafficSpec | None = None
    slos: Slos | None = None
    clients: ClientsSpec | None = None  # as in a plan; patient ones where nothing is said
    admission: AdmissionSpec | None = None
    router: RouterSpec | None = None
    calibration: Text | None = None  # a file of `capplan calibrate`, beside this one
    headroom: Fraction = 0.2  # of a limit that should be left
    usd_per_month: Usd | None = None
    usd_per_gpu_hour: Usd | None = None


class IgnoreSection(Spec):
    """Findings that are accepted, with the reason why, and until when."""

    rule: RuleId
    reason: Text
    path: Text = "*"
    deployment: Text = "*"
    until: Date | None = None


class CheckSpec(Spec):
    """The whole file."""

    # Served name, local path or URI as manifests have it -> a model of the catalogue or a path.
    models: dict[Text, Text] = {}
    # Node label, instance type or resource profile -> an accelerator of the catalogue.
    hardware: dict[Text, Text] = {}
    # Variables and Helm values that are set elsewhere.
    values: dict[Text, Annotated[str | int | float | bool, Field(union_mode="left_to_right")]] = {}
    deployments: dict[Text, DeploymentSection] = {}
    ignore: tuple[IgnoreSection, ...] = ()
    exclude: tuple[Text, ...] = ()
    fail_level: Severity | None = None
    baseline: Text | None = None
