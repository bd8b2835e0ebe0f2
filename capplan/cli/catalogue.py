"""`capplan hardware` and `capplan models`: what the catalogue holds."""

from __future__ import annotations

from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.planner.catalogue import hardware_facts, model_facts
from capplan.render import catalogue as render
from capplan.specs.catalogue import load_all, load_hardware, load_model
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec


def list_hardware(as_json: bool, form: str) -> int:
    facts = [hardware_facts(found) for found in load_all(HardwareSpec, "hardware")]
    show(
        "capplan.hardware-list/1", {}, (), facts, lambda: render.hardware_list(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def show_hardware(name: str, as_json: bool, form: str) -> int:
    facts = hardware_facts(load_hardware(_checked(name)))
    show(
        "capplan.hardware/1", {"name": name}, (), facts, lambda: render.hardware(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def list_models(as_json: bool, form: str) -> int:
    facts = [model_facts(found) for found in load_all(ModelSpec, "models")]
    show(
        "capplan.models-list/1", {}, (), facts, lambda: render.models_list(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def show_model(name: str, as_json: bool, form: str) -> int:
    facts = model_facts(load_model(_checked(name)))
    show(
        "capplan.model/1", {"name": name}, (), facts, lambda: render.model(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def _checked(name: str) -> str:
    if not name.strip() or len(name) > 4096 or "\0" in name:
        raise CapplanError(f"`{name[:40]!a}` is not a name or a path")
    return name
