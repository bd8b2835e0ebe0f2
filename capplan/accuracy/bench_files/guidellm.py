"""guidellm reports, metadata versions 1 and 2: a list of benchmarks, each at one load.

Every metric is split by the state of its requests; only `successful` ones count. Request
latency is in seconds, the others say `_ms`. What guidellm calls time per output token divides
the whole latency by the tokens, so that its inter-token latency is our TPOT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capplan.accuracy.bench_files.numbers import at, count_of, first_of, number_of
from capplan.accuracy.bench_files.row import Draft


def is_guidellm(document: Mapping[str, Any]) -> bool:
    benchmarks = document.get("benchmarks")
    return isinstance(benchmarks, list) and all(at(one, "metrics") for one in benchmarks)


def read_guidellm(document: Mapping[str, Any]) -> Iterator[Draft]:
    whole = document.get("config")
    for index, benchmark in enumerate(document["benchmarks"], start=1):
        yield _read(benchmark, whole, f"benchmark {index}")


def _read(benchmark: Mapping[str, Any], whole: object, place: str) -> Draft:
    draft = Draft("guidellm", place)
    metrics = benchmark["metrics"]
    model = at(benchmark, "config", "backend", "model") or at(benchmark, "config", "model")
    draft.put("model", model or at(whole, "backend", "model") or at(whole, "model"))
    _load(benchmark, draft)
    draft.completed = count_of(at(metrics, "request_totals", "successful"))
    failed = number_of(at(metrics, "request_totals", "errored"))
    draft.num_failed = int(failed or 0)
    draft.duration_s = number_of(benchmark.get("duration"))
    draft.put("num_prompts", draft.completed)
    _latency(metrics, draft, "time_to_first_token_ms", "ttft", 1.0)
    _latency(metrics, draft, "inter_token_latency_ms", "tpot", 1.0)
    _latency(metrics, draft, "request_latency", "e2e", 1e3)
    for column, name in (("isl", "prompt_token_count"), ("osl", "output_token_count")):
        draft.put(column, number_of(at(metrics, name, "successful", "mean")))
    draft.put(
        "output_tok_s", number_of(at(metrics, "output_tokens_per_second", "successful", "mean"))
    )
    draft.put("req_s", number_of(at(metrics, "requests_per_second", "successful", "mean")))
    return draft


def _latency(metrics: object, draft: Draft, name: str, metric: str, factor: float) -> None:
    values = at(metrics, name, "successful")
    if not isinstance(values, Mapping):
        return
    p99 = first_of(values, ("p99",)) or at(values, "percentiles", "p99")
    for statistic, value in (
        ("mean", values.get("mean")),
        ("p50", values.get("median")),
        ("p99", p99),
    ):
        read = number_of(value)
        if metric == "e2e" and statistic != "mean":
            continue
        draft.put(f"{metric}_{statistic}_ms", read * factor if read else None)


def _load(benchmark: Mapping[str, Any], draft: Draft) -> None:
    strategy = (
        at(benchmark, "config", "strategy")
        or at(benchmark, "args", "strategy")
        or at(benchmark, "scheduler", "strategy")
    )
    kind = str(first_of(strategy, ("type_", "kind")) or "") if isinstance(strategy, Mapping) else ""
    rate = number_of(at(strategy, "rate"))
    streams = count_of(at(strategy, "streams")) or count_of(at(strategy, "max_concurrency"))
    if kind in ("constant", "async", "poisson") and rate:
        draft.put("workload", "poisson" if kind == "poisson" else "constant-rate")
        draft.put("request_rate_qps", rate)
    elif kind == "synchronous":
        draft.put("workload", "closed")
        draft.put("concurrency", 1)
    elif kind == "concurrent" and streams:
        draft.put("workload", "closed")
        draft.put("concurrency", streams)
    elif kind == "throughput":
        draft.put("workload", "burst")
