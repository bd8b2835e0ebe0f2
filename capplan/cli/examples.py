"""`capplan examples`: plans to start from."""

from __future__ import annotations

from pathlib import Path

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.files import checked_path, write_new
from capplan.cli.output import show
from capplan.errors import CapplanError, Location
from capplan.planner.examples import COPIED_SCHEMA, example_files, examples
from capplan.render.catalogue import examples_list


def list_examples(as_json: bool, form: str) -> int:
    facts = examples()
    show(
        "capplan.examples/1", {}, (), facts, lambda: examples_list(facts),
        as_json=as_json, form=form,
    )  # fmt: skip
    return EXIT_FINE


def copy_example(name: str, output: str | None) -> int:
    """Write the plan, and the files that it reads beside it; raises CapplanError."""
    text, others = example_files(name)
    path = checked_path(output) if output is not None else Path(f"{name}.yaml")
    files = {path: text} | {path.parent / other: inner for other, inner in others.items()}
    for file in files:  # before any is written: all or none
        if file.exists():
            hint = "remove it, or give another name with --output"
            raise CapplanError("the file exists", location=Location(str(file)), hint=hint)
    said = environment().stderr
    for file, inner in files.items():
        write_new(file, inner)
        said.write(f"wrote {file}\n")
    schema = path.parent / COPIED_SCHEMA
    said.write(
        f"next: capplan simulate --plan {path}\n"
        f"for an editor that checks it: capplan schema plan > {schema}\n"
    )
    return EXIT_FINE
