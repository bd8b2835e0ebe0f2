"""The options of `capplan accuracy` and `capplan calibrate` beside those that others have too."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.cli import completion
from capplan.cli.options import Text, option

MeasuredFile = Annotated[
    str,
    typer.Argument(
        metavar="MEASURED.csv",
        help="Measured runs, one a row, in the columns of docs/accuracy.md.",
    ),
]
By = Annotated[
    Text, option("--by", "COLUMN[,COLUMN...]", "Errors for each value of these columns too.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="COLUMN=VALUE", help="Only rows with this cell; may be repeated.",
        show_default=False,
    ),
]  # fmt: skip
Core = Annotated[bool, typer.Option("--core", help="Only rows with core = 1.", show_default=False)]
Worst = Annotated[
    Text, option("--worst", "N", "Show the N worst rows, with their parts [default: 5].")
]
Predictions = Annotated[
    Text, option("--predictions", "OUT.csv", "Also write the predictions: id and the metrics.")
]
Jobs = Annotated[Text, option("--jobs", "N", "Processes [default: one a processor].")]

ResultFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="RESULTS",
        help="Result files of vllm bench, SGLang, guidellm, aiperf, genai-perf, inference-perf; "
        "folders of them; or a CSV of measured runs.",
    ),
]
RunModel = Annotated[
    Text,
    option(
        "--model", "NAME", "The model [default: as the files say].",
        complete=completion.model_names,
    ),
]  # fmt: skip
RunHardware = Annotated[
    Text,
    option(
        "--hardware", "NAME", "The accelerator [default: as the files say].",
        complete=completion.hardware_names,
    ),
]  # fmt: skip
RunGpus = Annotated[Text, option("--gpus", "N", "GPUs of the server [default: TP, or the files'].")]
RunTp = Annotated[
    Text, option("--tp", "N", "Tensor-parallel degree [default: the least that fits].")
]
RunEngine = Annotated[Text, option("--engine", "NAME", "vLLM, SGLang, ... [default: the files'].")]
RunDtype = Annotated[
    Text, option("--dtype", "FORMAT", "Weights [default: as the model's name says].")
]
RunKvDtype = Annotated[Text, option("--kv-dtype", "FORMAT", "KV cache [default: the engine's].")]
RunBatchedTokens = Annotated[
    Text, option("--max-num-batched-tokens", "TOKENS", "Token budget [default: the engine's].")
]
RunWorkload = Annotated[
    Text,
    option("--workload", "KIND", "closed, poisson, burst, ... [default: as the files say]."),
]
RunConcurrency = Annotated[
    Text, option("--concurrency", "N", "Requests in flight [default: as the files say].")
]
RunPromptTokens = Annotated[
    Text, option("--prompt-tokens", "TOKENS", "Mean prompt [default: as the files say].")
]
RunOutputTokens = Annotated[
    Text, option("--output-tokens", "TOKENS", "Mean output [default: as the files say].")
]
CalibrationOutput = Annotated[
    Text, option("--output", "FILE", "A new file for the calibration [default: none].")
]
