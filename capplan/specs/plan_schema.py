"""The JSON Schema of plan.yaml, for editors."""

from __future__ import annotations

from typing import Any

from capplan.specs.plan import Plan


def plan_schema() -> dict[str, Any]:
    """Of what a file may hold; quantities are texts with units."""
    found = _without_titles(Plan.model_json_schema(mode="validation"))
    assert isinstance(found, dict)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plan.yaml of capplan",
        **found,
    }


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
