"""The published schemas of `--json` follow from the result classes, and every output obeys them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import COMMANDS, ROOT, Command, run_command
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from capplan.results import gpus, sizing
from capplan.results.accuracy import AccuracyInputs, AccuracyResult
from capplan.results.assumptions import Assumption
from capplan.results.calibration import CalibrateInputs, CalibrationResult
from capplan.results.catalogue import ExampleFacts, HardwareFacts, ModelFacts
from capplan.results.check import CheckInputs, CheckResult
from capplan.results.doctor import DoctorResult
from capplan.results.exercise import ExerciseInputs, ExerciseResult
from capplan.results.explanation import Explanation
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.kv import KvInputs, KvResult
from capplan.results.pareto import ParetoInputs, ParetoResult
from capplan.results.roofline import RooflineInputs, RooflineResult
from capplan.results.schedulers import SchedulersInputs, SchedulersResult
from capplan.results.simulate import SimulateInputs, SimulateResult
from capplan.results.variants import VariantsResult

FOLDER = ROOT / "docs" / "schemas"
# Bounds load no results of the simulation, so these classes are named there for types alone.
vars(gpus).update(Sizing=sizing.Sizing, Sustained=sizing.Sustained)
NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
NOTHING = {"type": "object", "properties": {}}
# Schema name: inputs and result, as a class or as a schema.
FORMS: dict[str, tuple[Any, Any]] = {
    "capplan.gpus/1": (GpusInputs, GpusResult),
    "capplan.roofline/1": (RooflineInputs, RooflineResult),
    "capplan.kv/1": (KvInputs, KvResult),
    "capplan.pareto/1": (ParetoInputs, ParetoResult),
    "capplan.simulate/1": (SimulateInputs, SimulateResult),
    "capplan.schedulers/1": (SchedulersInputs, SchedulersResult),
    "capplan.exercise/1": (ExerciseInputs, ExerciseResult),
    "capplan.accuracy/1": (AccuracyInputs, AccuracyResult),
    "capplan.calibrate/1": (CalibrateInputs, CalibrationResult),
    "capplan.check/1": (CheckInputs, CheckResult),
    "capplan.simulate-variants/1": (SimulateInputs, VariantsResult),
    # Inputs are those of the command that is explained.
    "capplan.explanation/1": (NOTHING, Explanation),
    "capplan.hardware-list/1": (NOTHING, list[HardwareFacts]),
    "capplan.hardware/1": (NAMED, HardwareFacts),
    "capplan.doctor/1": (NOTHING, DoctorResult),
    "capplan.examples/1": (NOTHING, list[ExampleFacts]),
    "capplan.models-list/1": (NOTHING, list[ModelFacts]),
    "capplan.model/1": (NAMED, ModelFacts),
}
names = pytest.mark.parametrize("name", FORMS)
commands = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of one command's document."""
    inputs, result = FORMS[name]
    parts = {"inputs": inputs, "assumptions": list[Assumption], "result": result}
    adapters = [
        (key, "serialization", TypeAdapter(form))
        for key, form in parts.items()
        if not isinstance(form, dict)
    ]
    found, shared = TypeAdapter.json_schemas(adapters)
    properties: dict[str, Any] = {"schema": {"const": name}}
    for key, form in parts.items():
        properties[key] = form if isinstance(form, dict) else found[key, "serialization"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "type": "object",
        "properties": without_titles(properties),
        "required": list(properties),
        "$defs": without_titles(shared["$defs"]),
    }


def without_titles(schema: Any) -> Any:
    """pydantic repeats each key as a title."""
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k != "title" or not isinstance(v, str)}
    return {key: without_titles(value) for key, value in kept.items()}


def closed(schema: Any) -> Any:
    """The same schema where an unknown key is an error; readers must tolerate new keys, we not."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return inner | {"additionalProperties": False} if "properties" in schema else inner


def file_of(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '-')}.json"


def document(line: str) -> dict[str, Any]:
    _, text = run_command(f"{line} --json")
    found: dict[str, Any] = json.loads(text)
    return found


@names
def test_published_schema_is_current(name: str, golden: Callable[[Path, str], None]) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    golden(file_of(name), json.dumps(schema, indent=2) + "\n")


def test_every_file_is_a_current_schema() -> None:
    inputs = {FOLDER / "plan.schema.json", FOLDER / "config.schema.json"}  # see test_plan, check/
    assert set(FOLDER.iterdir()) == inputs | {*(file_of(name) for name in FORMS)}
    # Last digits of a calibration depend on the linear algebra at hand: see test_calibrate.
    # A review has formats of its own: see tests/check/test_outputs.py. No two installations are
    # alike: see test_doctor.
    elsewhere = {
        "capplan.calibrate/1", "capplan.explanation/1", "capplan.check/1", "capplan.doctor/1",
    }  # fmt: skip
    assert {command.schema for command in COMMANDS} | elsewhere == set(FORMS)


@commands
def test_output_obeys_its_schema(command: Command) -> None:
    answer = document(command.line)
    assert answer["schema"] == command.schema
    schema = json.loads(file_of(command.schema).read_text(encoding="utf-8"))
    Draft202012Validator(closed(schema)).validate(answer)


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.schema == "capplan.gpus/1"], ids=lambda c: c.name
)
def test_promised_keys_of_gpus(command: Command) -> None:
    result = document(command.line)["result"]
    promised = {
        "feasible", "num_gpus", "num_replicas", "tp", "num_gpus_rounded", "binding", "bounds",
        "concurrency", "kv_bytes_per_token",
    }  # fmt: skip
    assert promised <= result.keys()
    assert result["feasible"] is (command.exit_code == 0)
    if result["feasible"]:
        bounds = {"num_gpus_memory", "num_gpus_decode", "num_gpus_prefill", "num_gpus_combined"}
        assert bounds <= result["bounds"].keys()
        assert result["num_gpus"] == result["num_replicas"] * result["tp"]
    sizing = result.pop("sizing")
    assert (sizing is None) == ("--no-verify" in command.line)
    assert sizing is None or {"kinds", "proof", "trade_offs"} <= sizing.keys()
    first, *_ = candidates = result.pop("candidates")
    assert first == result
    assert all(promised <= candidate.keys() for candidate in candidates)


def test_promised_keys_of_kv() -> None:
    assert {
        "kv_bytes_per_token", "kv_bytes_per_token_per_gpu", "num_params_total",
        "num_params_active", "weight_bytes",
    } <= document("kv")["result"].keys()  # fmt: skip


def test_promised_keys_of_roofline() -> None:
    result = document("roofline")["result"]
    assert "ridge_flop_per_byte" in result
    assert result["points"]
    for point in result["points"]:
        assert {"phase", "intensity_flop_per_byte", "bound", "time_s"} <= point.keys()
