"""`capplan hardware` and `capplan models`: what the catalogue holds."""

from __future__ import annotations

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.files import checked_path, write_new
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.planner.catalogue import hardware_facts, model_facts
from capplan.render import catalogue as render
from capplan.specs.catalogue import load_all, load_config, load_hardware, load_model
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
    facts = hardware_facts(load_hardware(str(checked_path(name))))
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
    facts = model_facts(load_model(str(checked_path(name))))
    show(
        "capplan.model/1", {"name": name}, (), facts, lambda: render.model(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def import_model(config: str, name: str | None, output: str | None) -> int:
    """Write the YAML of a config to stdout, or to a new file."""
    from capplan.specs.model_file import yaml_text

    found = load_config(str(checked_path(config))).spec
    name = _named(name) if name is not None else found.name
    spec = found.model_copy(update={"name": name, "sources": (f"{name} config.json",)})
    text = yaml_text(spec)
    if output is None:
        environment().stdout.write(text)
        return EXIT_FINE
    write_new(checked_path(output), text)
    environment().stderr.write(f"wrote {output}\n")
    return EXIT_FINE


def _named(name: str) -> str:
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise CapplanError(f"--name: `{name[:40]!a}` is not a name", hint="200 letters at most")
    return name
