"""The options of what is simulated, beside those that other commands have too."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.cli import completion
from capplan.cli.options import Text, option

PlanFile = Annotated[
    Text, option("--plan", "FILE", "A plan.yaml; options stand in for what it says.")
]
Variant = Annotated[
    Text,
    option("--variant", "NAME", "One of the plan's variants alone; `as it is` is the plan."),
]
Replicas = Annotated[Text, option("--replicas", "N", "Copies of the model [default: 1].")]
Router = Annotated[
    Text,
    option(
        "--router", "POLICY",
        "round-robin, random, random-of-two, least-requests, least-kv or prefix-aware "
        "[default: least-requests].", complete=completion.router_policies,
    ),
]  # fmt: skip
ClientTimeout = Annotated[
    Text, option("--client-timeout", "DURATION", "Users give up without a first token by then.")
]
ClientRetries = Annotated[
    Text, option("--client-retries", "N", "And send again, so many times [default: 0].")
]
MaxQueueDepth = Annotated[
    Text, option("--max-queue-depth", "N", "A replica with so many waiting answers 429.")
]
SimulateLengths = Annotated[
    Text,
    option(
        "--prompt-tokens", "TOKENS|DIST",
        "Prompts: 1024, or lognormal:1024,0.8, normal:1024,200, uniform:64-2048, "
        "@file.csv:column [default: 1024].",
    ),
]  # fmt: skip
SimulateOutputs = Annotated[
    Text, option("--output-tokens", "TOKENS|DIST", "Outputs, in the same form [default: 256].")
]
Users = Annotated[
    Text, option("--users", "N", "So many users in a closed loop, in place of --qps.")
]
ThinkTime = Annotated[
    Text,
    option("--think-time", "DURATION|DIST", "Of a user after an answer: 2s, exponential:10s."),
]
Arrivals = Annotated[
    Text,
    option(
        "--arrivals", "PATTERN",
        "poisson, constant, gamma:2.5 (CV of the gaps), burst or burst:40 [default: poisson].",
    ),
]  # fmt: skip
Trace = Annotated[Text, option("--trace", "FILE", "Replay a recorded trace.")]
SkipBadRows = Annotated[
    bool | None,
    typer.Option("--skip-bad-rows", help="Of a trace: leave them out, and say how many."),
]
NumRequests = Annotated[
    Text,
    option("--num-requests", "N", "Requests [default: 10,000].", also="--requests"),
]
Duration = Annotated[
    Text, option("--duration", "DURATION", "Time of arrivals, in place of a number of requests.")
]
Seed = Annotated[Text, option("--seed", "N", "Of all randomness [default: 0].")]
Replications = Annotated[
    Text, option("--replications", "N", "Runs with seeds N, N+1, ... [default: 1].")
]
Warmup = Annotated[
    Text,
    option(
        "--warmup", "DURATION",
        "Requests that arrive before it do not count [default: found in the run].",
    ),
]  # fmt: skip
SloItl = Annotated[Text, option("--slo-itl", "DURATION", "Limit on gaps between tokens.")]
SloE2e = Annotated[Text, option("--slo-e2e", "DURATION", "Limit on arrival to last token.")]
SloPercentile = Annotated[
    Text, option("--slo-percentile", "NUMBER", "At which the limits hold [default: 99].")
]
SloGoodput = Annotated[
    Text, option("--slo-goodput", "SHARE", "Least share of requests that meet all limits.")
]
NumGpuBlocks = Annotated[
    Text,
    option(
        "--num-gpu-blocks-override", "N", "KV blocks [default: what memory holds]."
    ),
]  # fmt: skip
EnableChunkedPrefill = Annotated[
    bool | None,
    typer.Option(
        "--enable-chunked-prefill/--no-enable-chunked-prefill",
        help="Prompts may be split over steps [default: the engine's].",
        show_default=False,
    ),
]
Sweep = Annotated[
    Text,
    option(
        "--sweep", "SETTING",
        "max_num_seqs, max_num_batched_tokens, tp, replicas or qps [default: max_num_seqs].",
        complete=completion.choices(
            "max_num_seqs", "max_num_batched_tokens", "tp", "replicas", "qps"
        ),
    ),
]  # fmt: skip
SweepValues = Annotated[
    Text, option("--values", "N[,N...]", "Of the swept setting [default: powers of two].")
]
SweepLatency = Annotated[
    Text,
    option("--latency", "ttft|tpot|itl|e2e", "Set against throughput [default: ttft]."),
]
Records = Annotated[
    Text, option("--records", "FILE", "Also write every request to a new .csv or .jsonl file.")
]
TimelineFile = Annotated[
    Text,
    option("--timeline", "FILE", "Also write the steps to a new .json file that Perfetto opens."),
]
CompareSchedulers = Annotated[
    bool,
    typer.Option(
        "--compare-schedulers",
        help="The same traffic under nine schedulers: static batching, Orca, prefill or decode "
        "first, chunked prefill, TensorRT-LLM's and SGLang's rules, vLLM.",
    ),
]
Exercise = Annotated[
    bool,
    typer.Option(
        "--exercise", help="The classic exercise of continuous batching, and what it hides."
    ),
]
