"""The command `report`."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from capplan.cli import options as o
from capplan.cli.commands.planning import gpus

ReportFormat = Annotated[
    o.Text,
    o.option(
        "--format", "html|markdown",
        "One HTML file that loads nothing, or markdown [default: by the file's ending, else html].",
    ),
]  # fmt: skip
_NOT_OURS = ("emit", "plot", "as_json", "form")


def report(output: o.Output = None, form: ReportFormat = None, **texts: Any) -> int:
    """The answer of `capplan gpus` as a document for a meeting: HTML, or markdown.

    Takes the options of `capplan gpus`. Headline, risk, what to run; then the simulated requests,
    every assumption, what else was looked at, every formula with its numbers, and the commands
    that ask again. Exit code 1 where no number of GPUs is enough.
    """
    from capplan.cli.report import answer

    return answer(texts, output, form)


def _with_options_of_gpus() -> None:
    """typer reads a command's options from its signature: those of `gpus` are declared there."""
    signature = inspect.signature(gpus, eval_str=True)
    theirs = [p for name, p in signature.parameters.items() if name not in _NOT_OURS]
    own = inspect.signature(report, eval_str=True).parameters
    parameters = [*theirs, own["output"], own["form"]]
    report.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
    report.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


_with_options_of_gpus()
