"""The JSON Schemas of plan.yaml and .capplan.yaml, for editors."""

from __future__ import annotations

from typing import Any

from capplan.specs.check import CheckSpec
from capplan.specs.fields import Spec
from capplan.specs.plan import Plan


def plan_schema() -> dict[str, Any]:
    """Of what a plan may hold; quantities are texts with units."""
    return _schema(Plan, "plan.yaml of capplan")


def config_schema() -> dict[str, Any]:
    """Of what `.capplan.yaml` may hold."""
    return _schema(CheckSpec, ".capplan.yaml of capplan check")


def _schema(spec: type[Spec], title: str) -> dict[str, Any]:
    found = _without_titles(spec.model_json_schema(mode="validation"))
    assert isinstance(found, dict)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **found}


def _without_titles(schema: Any) -> Any:
    """pydantic repeats each key as a title, and says OpenAPI's discriminators."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and key != "discriminator"
    }
    return {key: _without_titles(value) for key, value in kept.items()}
