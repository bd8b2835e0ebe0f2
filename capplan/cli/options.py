"""Every option, declared once: the same name and meaning in every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from capplan.cli import completion

Complete = Callable[[str], list[str]]


def option(
    name: str,
    metavar: str,
    help_text: str,
    *,
    also: str | None = None,
    complete: Complete | None = None,
) -> Any:
    names = [name] if also is None else [name, also]
    return typer.Option(
        *names, metavar=metavar, help=help_text, show_default=False,
        autocompletion=complete or completion.choices_of(metavar),
    )  # fmt: skip


Options = TypeVar("Options", bound=NamedTuple)


def picked(kind: type[Options], texts: Mapping[str, Any]) -> Options:
    """Those options of a command, all of them by name, that ``kind`` holds."""
    made: Callable[..., Options] = kind  # a checker takes NamedTuple's own arguments for its kinds'
    return made(**{name: texts[name] for name in kind._fields if name in texts})


Text = str | None

Qps = Annotated[
    Text,
    option("--qps", "RATE", "Arrival rate: 100, 300/min or 5M/day [default: 100]."),
]
ReplicaQps = Annotated[
    Text,
    option("--qps", "RATE", "Arrival rate: 4, 300/min or 5M/day [default: 4]."),
]
PeakFactor = Annotated[Text, option("--peak-factor", "NUMBER", "Peak over mean rate [default: 1].")]
SloTtft = Annotated[
    Text, option("--slo-ttft", "DURATION", "Limit on time to first token [default: 400ms].")
]
SloTpot = Annotated[
    Text, option("--slo-tpot", "DURATION", "Limit on time per output token [default: 25ms].")
]
Model = Annotated[
    Text,
    option(
        "--model", "NAME|FILE",
        "A catalogue name, a YAML file, or a Hugging Face config.json or its folder "
        "[default: llama-3.1-8b].", complete=completion.model_names,
    ),
]  # fmt: skip
Hardware = Annotated[
    Text,
    option(
        "--hardware", "NAME|FILE", "An accelerator [default: a100-sxm-80gb].",
        complete=completion.hardware_names,
    ),
]  # fmt: skip
HardwareList = Annotated[
    Text,
    option(
        "--hardware", "NAME[,NAME...]|all",
        "One accelerator, several to compare, or the whole catalogue [default: a100-sxm-80gb].",
        complete=completion.hardware_names,
    ),
]  # fmt: skip
SomeHardware = Annotated[
    Text,
    option(
        "--hardware", "NAME[,NAME...]",
        "An accelerator, or up to six to compare [default: a100-sxm-80gb].",
        complete=completion.hardware_names,
    ),
]  # fmt: skip
Dtype = Annotated[
    Text,
    option(
        "--dtype", "FORMAT", "Weights in bf16, fp8, int4, ... [default: as stored].",
        complete=completion.number_formats,
    ),
]  # fmt: skip
KvDtype = Annotated[
    Text,
    option(
        "--kv-dtype", "FORMAT", "KV cache in bf16, fp8, ... [default: as the activations].",
        complete=completion.number_formats,
    ),
]  # fmt: skip
Tp = Annotated[Text, option("--tp", "auto|N", "Tensor-parallel degree [default: auto].")]
TpOne = Annotated[Text, option("--tp", "N", "Tensor-parallel degree [default: 1].")]
GpuMemory = Annotated[
    Text,
    option(
        "--gpu-memory", "SIZE",
        "Memory of one GPU, say of a MIG slice [default: what a process sees, on file].",
    ),
]  # fmt: skip
GpuMemoryUtilization = Annotated[
    Text,
    option(
        "--gpu-memory-utilization", "SHARE",
        "Share of the visible memory that the engine takes [default: 0.9].",
    ),
]  # fmt: skip
Reserve = Annotated[
    Text,
    option(
        "--reserve", "SIZE",
        "Runtime and activations a GPU, beside weights and KV [default: 3.5GB].",
    ),
]  # fmt: skip
BlockSize = Annotated[Text, option("--block-size", "TOKENS", "Tokens in a KV block [default: 16].")]
MaxNumBatchedTokens = Annotated[
    Text,
    option("--max-num-batched-tokens", "TOKENS", "Token budget of a step [default: 8192]."),
]
MaxModelLen = Annotated[
    Text,
    option(
        "--max-model-len", "TOKENS",
        "Longest request that the engine admits [default: the model's context].",
    ),
]  # fmt: skip
AsyncScheduling = Annotated[
    bool | None,
    typer.Option(
        "--async-scheduling/--no-async-scheduling",
        help="Two steps under way at once [default: on].",
        show_default=False,
    ),
]
EnablePrefixCaching = Annotated[
    bool | None,
    typer.Option(
        "--enable-prefix-caching/--no-enable-prefix-caching",
        help="Keep finished prompts for reuse [default: on].",
        show_default=False,
    ),
]
Engine = Annotated[
    Text,
    option(
        "--engine", "NAME", "vllm, sglang or tensorrt-llm [default: vllm].",
        complete=completion.choices("vllm", "sglang", "tensorrt-llm"),
    ),
]  # fmt: skip
EngineVersion = Annotated[
    Text, option("--engine-version", "VERSION", "Its version, say 0.11 [default: the newest].")
]
EngineLog = Annotated[
    Text,
    option(
        "--engine-log", "FILE",
        "A pasted start-up log: read, compared, and used for whatever is not given.",
        also="--vllm-log",
    ),
]  # fmt: skip
Pp = Annotated[Text, option("--pp", "N", "Pipeline stages [default: 1].")]
Dcp = Annotated[
    Text, option("--dcp", "N", "Decode context parallel: ranks that share tokens [default: 1].")
]
DpAttention = Annotated[
    Text,
    option(
        "--dp-attention", "N",
        "Copies of the attention that share the experts (expert parallel) [default: 1].",
    ),
]  # fmt: skip
MaxNumSeqs = Annotated[
    Text, option("--max-num-seqs", "N", "Running requests [default: the engine's, by GPU].")
]
KvUtilization = Annotated[
    Text,
    option(
        "--gpu-memory-utilization", "SHARE",
        "Share of the memory, by the engine's own rule [default: the engine's].",
    ),
]  # fmt: skip
KvReserve = Annotated[
    Text,
    option(
        "--reserve", "SIZE",
        "A flat sum beside weights and KV, in place of the engine's itemised terms.",
    ),
]  # fmt: skip
KvBatchedTokens = Annotated[
    Text,
    option(
        "--max-num-batched-tokens", "TOKENS",
        "Token budget of a step [default: the engine's, by GPU].",
    ),
]  # fmt: skip
Lengths = Annotated[
    Text,
    option(
        "--lengths", "LIST|DIST|@FILE",
        "Request lengths: 35,12,67 or lognormal:1280,0.8 or normal:1024,200 or uniform:64-2048; "
        "@lengths.txt, one a line; @trace.csv:column [default: lognormal:1280,0.8].",
    ),
]  # fmt: skip
ReplicaTokensPerS = Annotated[
    Text,
    option(
        "--replica-tokens-per-s", "NUMBER",
        "Output tokens/s of one replica, where you measured it; replaces our decode bound.",
    ),
]  # fmt: skip
Spares = Annotated[Text, option("--spares", "N", "Spare replicas [default: 1].")]
GpusPerNode = Annotated[
    Text, option("--gpus-per-node", "N", "Round up to whole nodes of N [default: the usual].")
]
Price = Annotated[
    Text, option("--price", "MONEY", "Dollars a GPU-hour [default: the list price on file].")
]
Commitment = Annotated[
    Text,
    option(
        "--commitment", "TIER",
        "Whose price of the file: on-demand, reserved, spot, marketplace, estimate "
        "[default: on-demand].",
        complete=completion.choices("on-demand", "reserved", "spot", "marketplace", "estimate"),
    ),
]  # fmt: skip
PriceFactor = Annotated[
    Text,
    option("--price-factor", "NUMBER", "A contract's share of that price, say 0.6 [default: 1]."),
]
IdlePower = Annotated[
    Text,
    option("--idle-power", "SHARE", "Of TDP, drawn by a GPU without work [default: 15%]."),
]
Batches = Annotated[
    Text, option("--batch", "N[,N...]", "Decode batches [default: 1,8,32,128,256].")
]
Kernels = Annotated[bool, typer.Option("--kernels", help="Each point kernel by kernel.")]
Contexts = Annotated[
    Text,
    option("--context", "TOKENS[,TOKENS...]", "Context lengths [default: 2048,8192]."),
]
Context = Annotated[Text, option("--context", "TOKENS", "Context of one sequence [default: 8192].")]
StaticLength = Annotated[
    Text,
    option(
        "--static-length", "TOKENS",
        "What static pre-allocation gives each request [default: the longest].",
    ),
]  # fmt: skip
Plot = Annotated[
    Text,
    option(
        "--plot", "FILE|-", "Also draw to a .png or .svg file (extra `plot`), or on the screen."
    ),
]
ConfigFile = Annotated[
    str,
    typer.Argument(metavar="CONFIG.json", help="A Hugging Face config.json, or its folder."),
]
Name = Annotated[
    Text, option("--name", "NAME", "The model's name [default: as the config or its folder].")
]
Output = Annotated[
    Text,
    option("--output", "FILE", "A new file to write to [default: standard output].", also="-o"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)]
Format = Annotated[
    Text,
    option(
        "--format", "auto|table|tsv",
        "Tables for people or tab-separated [default: auto, by where the output goes].",
    ),
]  # fmt: skip
Calibration = Annotated[
    Text,
    option("--calibration", "FILE", "What `capplan calibrate` learnt [default: none]."),
]

_EMIT = "vllm|sglang|trtllm|kubernetes|helm|kserve|compose|plan"
Emit = Annotated[
    Text,
    option("--emit", _EMIT, "Print what to run instead: a command, a manifest, or plan.yaml."),
]
EmitFormat = Annotated[
    Text, option("--format", _EMIT, "A command line or a manifest [default: kubernetes].")
]
PlanArgument = Annotated[str, typer.Argument(metavar="PLAN.yaml", help="A plan.")]
Repository = Annotated[
    Text, option("--repository", "NAME", "Weights to serve [default: the model's first on file].")
]
ReadRate = Annotated[
    Text,
    option(
        "--read-rate", "RATE",
        "At which weights load, for the probes [default: 200 MB/s].",
    ),
]  # fmt: skip
ExampleOutput = Annotated[
    Text, option("--output", "FILE", "The file to write [default: NAME.yaml].")
]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=completion.model_names,
        help="Of `capplan models list`, a Hugging Face id, a YAML file, or a config.json.",
    ),
]  # fmt: skip
HardwareName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=completion.hardware_names,
        help="Of `capplan hardware list`, or a YAML file.",
    ),
]  # fmt: skip
ExampleName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=completion.example_names,
        help="Of `capplan examples list`.",
    ),
]  # fmt: skip
