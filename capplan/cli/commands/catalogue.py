"""Commands that show what comes with capplan: `hardware`, `models`, `schema`, `examples`."""

from __future__ import annotations

from capplan.cli import check_options as c
from capplan.cli import options as o
from capplan.cli.output import output_format


def hardware_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All accelerators."""
    from capplan.cli.catalogue import list_hardware

    return list_hardware(as_json, output_format(form))


def hardware_show(name: o.HardwareName, as_json: o.Json = False, form: o.Format = None) -> int:
    """One accelerator, with the sources of its figures."""
    from capplan.cli.catalogue import show_hardware

    return show_hardware(name, as_json, output_format(form))


def models_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All models."""
    from capplan.cli.catalogue import list_models

    return list_models(as_json, output_format(form))


def models_show(name: o.ModelName, as_json: o.Json = False, form: o.Format = None) -> int:
    """One model: its layers, and its parameters and bytes by tensor group."""
    from capplan.cli.catalogue import show_model

    return show_model(name, as_json, output_format(form))


def models_import(config: o.ConfigFile, name: o.Name = None, output: o.Output = None) -> int:
    """Write a Hugging Face config.json as a YAML file of the catalogue."""
    from capplan.cli.catalogue import import_model

    return import_model(config, name, output)


def schema(name: c.SchemaName = None) -> int:
    """JSON Schemas: of plan.yaml and .capplan.yaml for editors, of every output of --json."""
    from capplan.cli.schema import answer

    return answer(name)


def examples_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All examples."""
    from capplan.cli.examples import list_examples

    return list_examples(as_json, output_format(form))


def examples_copy(name: o.ExampleName, output: o.ExampleOutput = None) -> int:
    """Write an example as a file of your own; nothing is overwritten."""
    from capplan.cli.examples import copy_example

    return copy_example(name, output)
