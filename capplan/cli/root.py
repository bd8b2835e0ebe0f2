"""The application without its commands: what holds for every one of them."""

from __future__ import annotations

import typer


def new_app() -> typer.Typer:
    # Plain help: rich markup would cost more than the rest of `capplan --help` together.
    app = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
        help="Capacity planner and roofline calculator for LLM serving.",
    )  # fmt: skip
    app.callback()(_root)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from capplan.cli.version import installed_version

        version = installed_version()
        checkout = "capplan, run from a checkout and not installed"
        typer.echo(checkout if version is None else f"capplan {version}")
        raise typer.Exit


def _completion(shell: str | None) -> None:
    if shell is not None:
        from capplan.cli.completion import script

        typer.echo(script(shell))
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
    show_completion: str = typer.Option(
        None, "--show-completion", metavar="SHELL", is_eager=True, callback=_completion,
        help="Print what makes bash, zsh or fish complete names.",
    ),
) -> None:  # fmt: skip
    """What holds for every command; without one `run` says how to begin."""
