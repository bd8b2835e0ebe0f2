"""inference-perf: `*_lifecycle_metrics.json`, everything in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.accuracy.bench_files.numbers import at, count_of, number_of
from capplan.accuracy.bench_files.row import Draft


def is_inference_perf(document: Mapping[str, Any]) -> bool:
    return "load_summary" in document and "successes" in document


def is_server_side(document: Mapping[str, Any]) -> bool:
    """The report made of the server's own counters."""
    return at(document, "successes", "prompt_len", "rate") is not None


def refuse_server_side(place: str) -> Draft:
    return Draft(
        "inference-perf", place, refusal="the server's own counters, whose lengths are totals"
    )


def read_inference_perf(document: Mapping[str, Any], place: str) -> Draft:
    draft = Draft("inference-perf", place)
    load, good = document["load_summary"], document["successes"]
    draft.completed = count_of(at(good, "count"))
    draft.num_failed = count_of(at(document, "failures", "count")) or 0
    draft.duration_s = number_of(at(load, "send_duration"))
    draft.put("num_prompts", count_of(at(load, "count")))
    rate = number_of(at(load, "requested_rate")) or number_of(at(load, "achieved_rate"))
    concurrency = count_of(at(load, "concurrency"))
    if rate:
        # Stages are sent at even distances unless the load type says otherwise, which is not here.
        draft.put("workload", "constant-rate")
        draft.put("request_rate_qps", rate)
    elif concurrency:
        draft.put("workload", "closed")
        draft.put("concurrency", concurrency)
    draft.put("isl", number_of(at(good, "prompt_len", "mean")))
    draft.put("osl", number_of(at(good, "output_len", "mean")))
    for metric, name in (("ttft", "time_to_first_token"), ("tpot", "time_per_output_token")):
        values = at(good, "latency", name)
        for statistic, key in (("mean", "mean"), ("p50", "median"), ("p99", "p99")):
            value = number_of(at(values, key))
            draft.put(f"{metric}_{statistic}_ms", value * 1e3 if value else None)
    e2e = number_of(at(good, "latency", "request_latency", "mean"))
    draft.put("e2e_mean_ms", e2e * 1e3 if e2e else None)
    draft.put("output_tok_s", number_of(at(good, "throughput", "output_tokens_per_sec")))
    draft.put("req_s", number_of(at(good, "throughput", "requests_per_sec")))
    if "workload" not in draft.cells:
        draft.notes.append("the summary of several stages: give the stages instead")
    return draft
