"""The typer application: every command of `cli/commands`, in the order in which help lists them."""

from __future__ import annotations

import typer

from capplan.cli.commands import catalogue, checking, measuring, planning, reporting, simulation
from capplan.cli.root import new_app

app = new_app()
hardware_app = typer.Typer(rich_markup_mode=None, help="Accelerators of the catalogue.")
models_app = typer.Typer(rich_markup_mode=None, help="Models of the catalogue.")
examples_app = typer.Typer(rich_markup_mode=None, help="Plans to start from.")
app.add_typer(hardware_app, name="hardware")
app.add_typer(models_app, name="models")
app.add_typer(examples_app, name="examples")


app.command()(planning.gpus)
app.command()(planning.roofline)
app.command()(planning.kv)
app.command()(simulation.simulate)
app.command()(simulation.pareto)
app.command("emit")(simulation.emit_plan)
app.command(
    "explain",
    options_metavar="COMMAND [OPTIONS]",
    context_settings={
        "allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": [],
    },
)(simulation.explain_command)  # fmt: skip
app.command()(reporting.report)
app.command()(measuring.accuracy)
app.command()(measuring.calibrate)
app.command()(catalogue.schema)
app.command()(checking.check)
app.command()(checking.doctor)
hardware_app.command("list")(catalogue.hardware_list)
hardware_app.command("show")(catalogue.hardware_show)
models_app.command("list")(catalogue.models_list)
models_app.command("show")(catalogue.models_show)
models_app.command("import")(catalogue.models_import)
examples_app.command("list")(catalogue.examples_list)
examples_app.command("copy")(catalogue.examples_copy)
