"""The options of `capplan gpus` beside those that other commands have too."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.cli.options import Text
from capplan.cli.options import _option as option

ObjectiveName = Annotated[
    Text,
    option(
        "--objective", "cost|gpus|watts|latency",
        "What is least: the bill, GPUs, watts, or P99 end to end [default: cost].",
    ),
]  # fmt: skip
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Simulate to find the count and to prove it; without: bounds only.",
    ),
]
Cache = Annotated[
    bool,
    typer.Option("--cache/--no-cache", help="Keep simulated points in the user's cache folder."),
]
