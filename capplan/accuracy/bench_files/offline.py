"""`vllm bench throughput` and `vllm bench latency`: in-process runs without a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.accuracy.bench_files.numbers import count_of, number_of
from capplan.accuracy.bench_files.row import Draft


def is_throughput(document: Mapping[str, Any]) -> bool:
    return "elapsed_time" in document and "requests_per_second" in document


def read_throughput(document: Mapping[str, Any], place: str) -> Draft:
    draft = Draft("vllm bench throughput", place)
    draft.put("engine", "vLLM")
    draft.put("workload", "offline")
    draft.completed = count_of(document.get("num_requests"))
    draft.duration_s = number_of(document.get("elapsed_time"))
    draft.put("num_prompts", draft.completed)
    draft.put("req_s", number_of(document.get("requests_per_second")))
    # Prompt and output tokens together.
    draft.put("total_tok_s", number_of(document.get("tokens_per_second")))
    return draft


def is_latency(document: Mapping[str, Any]) -> bool:
    return "avg_latency" in document and "latencies" in document


def read_latency(document: Mapping[str, Any], place: str) -> Draft:
    """One batch, run again and again; its size stands in the file's name at best."""
    draft = Draft("vllm bench latency", place)
    draft.put("engine", "vLLM")
    draft.put("workload", "static")
    mean = number_of(document.get("avg_latency"))
    draft.put("e2e_mean_ms", mean * 1e3 if mean else None)
    return draft
