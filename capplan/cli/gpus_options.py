"""The options of `capplan gpus` beside those that other commands have too."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.cli.options import Text, option

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
ExpertParallel = Annotated[
    Text,
    option(
        "--expert-parallel", "on|off|auto",
        "Experts whole on the GPUs of a TP group [default: off].",
    ),
]  # fmt: skip
DpAttention = Annotated[
    Text,
    option(
        "--dp-attention", "N|auto",
        "Copies of the attention that share the experts [default: auto for models whose KV TP "
        "would repeat, else 1].",
    ),
]  # fmt: skip
Growth = Annotated[
    Text, option("--growth", "SHARE/month", "Also the fleet of the months to come: 20%/month.")
]
Horizon = Annotated[Text, option("--horizon", "MONTHS", "How far: 6mo or 2y [default: 6mo].")]
Availability = Annotated[
    Text,
    option(
        "--availability", "SHARE",
        "As many spares as keep the limits for this share of the time, in place of --spares.",
    ),
]  # fmt: skip
Mtbf = Annotated[
    Text,
    option("--mtbf", "DURATION", "Of one GPU between failures [default: 50,700 h, Llama 3's]."),
]
Mttr = Annotated[
    Text, option("--mttr", "DURATION", "Until a replica that failed is back [default: 1h].")
]
Sensitivity = Annotated[
    bool | None,
    typer.Option(
        "--sensitivity/--no-sensitivity",
        help="Also how the count moves with lengths, bursts and the router: a search each.",
        show_default=False,
    ),
]
