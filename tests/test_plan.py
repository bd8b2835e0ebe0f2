"""plan.yaml: the published schema, the examples, and what is said of faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import ROOT
from jsonschema import Draft202012Validator
from spec_schemas import plan_schema

from capplan.errors import CapplanError
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.documents import read_yaml
from capplan.specs.plan import read_plan

SCHEMA = ROOT / "docs" / "schemas" / "plan.schema.json"
EXAMPLES = sorted((ROOT / "capplan" / "examples").glob("*.yaml"))
examples = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
HEAD = "model: llama-3.1-8b\nhardware: l4\n"


def test_published_schema_is_current(golden: Callable[[Path, str], None]) -> None:
    schema = plan_schema()
    Draft202012Validator.check_schema(schema)
    golden(SCHEMA, json.dumps(schema, indent=2) + "\n")


@examples
def test_examples_are_plans(path: Path) -> None:
    """Each names its schema for editors, obeys it, and names what the catalogue has."""
    text = path.read_text(encoding="utf-8")
    assert "# yaml-language-server: $schema=" in text.splitlines()[0]
    assert (path.parent / text.splitlines()[0].rpartition("=")[2]).resolve() == SCHEMA
    plan, document = read_plan(path)
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(document.data)
    load_model(plan.model)
    load_hardware(plan.hardware)
    assert plan.title


@pytest.mark.parametrize(
    ("more", "message", "line"),
    [
        ("engine: {max_num_seq: 4}", "`engine.max_num_seq` is not a known field", 3),
        ("engine:\n  name: sglang\n  max_num_seqs: 4", "`engine.max_num_seqs` is not a known", 5),
        ("engine: {name: vlm}", "`engine.name` should be one of vllm, sglang, tensorrt-llm", 3),
        ("engine: 5", "`engine` should be a mapping of fields", 3),
        ("slos: {ttft: 400}", "`slos.ttft`: `400` has no unit", 3),
        ("slos:\n  ttft: {limit: 1 s, percentile: 100}", "should be below 100", 4),
        ("slos: {goodput: 90 %}", "`slos.goodput` needs a limit to be met", 3),
        ("slos: {goodput: 190 %, ttft: 1 s}", "`190 %` is not a share", 3),
        ("simulation: {warmup: 5}", "`simulation.warmup`: `5` has no unit", 3),
        ("traffic: {rate: 5/fortnight}", "`traffic.rate`", 3),
        ("deployment: {tp: 0}", "`deployment.tp` should be 1 or more", 3),
        ("deployment: {price: 2}", "`2` is not an amount", 3),
        ("modle: a", "`modle` is not a known field", 3),
    ],
)
def test_faults(tmp_path: Path, more: str, message: str, line: int) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(HEAD + more + "\n", encoding="utf-8")
    with pytest.raises(CapplanError) as caught:
        read_plan(path)
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_the_least_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(HEAD, encoding="utf-8")
    plan, _ = read_plan(path)
    assert plan.engine.name == "vllm"
    assert plan.deployment.replicas == plan.deployment.tp == 1
    assert read_yaml(path).data == {"model": "llama-3.1-8b", "hardware": "l4"}
