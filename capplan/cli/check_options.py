"""Options of `capplan check`."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.cli.completion import choices, rule_ids, schema_names

Texts = list[str] | None

Paths = Annotated[Texts, typer.Argument(metavar="PATH", help="Files and folders [default: .].")]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Instead of the nearest .capplan.yaml."),
]
Values = Annotated[
    Texts,
    typer.Option("--set", metavar="NAME=VALUE", help="A variable or Helm value; repeatable."),
]
Formats = Annotated[
    Texts,
    typer.Option(
        "--format", metavar="FORMAT[=FILE]",
        help="text, json, sarif, junit, github or markdown; repeatable with files.",
    ),
]  # fmt: skip
Outputs = Annotated[
    Texts,
    typer.Option(
        "--output", metavar="FORMAT=FILE", help="A further format, to a file; repeatable."
    ),
]
FailLevel = Annotated[
    str | None,
    typer.Option(
        "--fail-level",
        metavar="LEVEL",
        help="error, warning or info [default: error].",
        autocompletion=choices("error", "warning", "info"),
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail, too, where something could not be resolved.")
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Exit with 0 where no file deploys a model.")
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", help="Accept the findings that it holds."),
]
WriteBaseline = Annotated[
    str | None,
    typer.Option(
        "--write-baseline", metavar="FILE", help="Write today's findings, and exit with 0."
    ),
]
Diff = Annotated[
    str | None,
    typer.Option(
        "--diff", metavar="REVISION",
        help="Only what changed since a git revision, and its effect on GPUs and cost.",
    ),
]  # fmt: skip
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Name the files that were passed over.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print findings only.")]
ListRules = Annotated[bool, typer.Option("--list-rules", help="Print all rules.")]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain", metavar="RULE", help="Say why a rule exists.", autocompletion=rule_ids
    ),
]
SchemaName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        autocompletion=schema_names,
        help="plan, config, or an output: gpus, capplan.gpus/1, ...; all without.",
    ),
]
