"""aiperf and genai-perf exports: one object a metric, each with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.accuracy.bench_files.numbers import at, count_of, first_of, number_of
from capplan.accuracy.bench_files.row import Draft

_MS_OF = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}
_SECONDS_OF = {unit: ms / 1e3 for unit, ms in _MS_OF.items()}


def is_aiperf(document: Mapping[str, Any]) -> bool:
    return at(document, "request_latency", "unit") is not None and "input_config" in document


def read_aiperf(document: Mapping[str, Any], place: str) -> Draft:
    config = document["input_config"]
    draft = Draft("aiperf" if at(config, "loadgen") is not None else "genai-perf", place)
    names = at(config, "endpoint", "model_names") or at(config, "model_names")
    draft.put("model", names[0] if isinstance(names, list) and names else None)
    draft.completed = count_of(at(document, "request_count", "avg"))
    draft.num_failed = count_of(at(document, "error_request_count", "avg")) or 0
    duration = number_of(at(document, "benchmark_duration", "avg"))
    unit = str(at(document, "benchmark_duration", "unit") or "sec")
    draft.duration_s = duration * _SECONDS_OF.get(unit, 1.0) if duration else None
    draft.put("num_prompts", draft.completed)
    draft.put("isl", number_of(at(document, "input_sequence_length", "avg")))
    draft.put("osl", number_of(at(document, "output_sequence_length", "avg")))
    _latency(document, draft, "time_to_first_token", "ttft")
    # A mean over requests of their mean gap: our TPOT.
    _latency(document, draft, "inter_token_latency", "tpot")
    _latency(document, draft, "request_latency", "e2e")
    draft.put("output_tok_s", number_of(at(document, "output_token_throughput", "avg")))
    draft.put("req_s", number_of(at(document, "request_throughput", "avg")))
    _load(config, draft)
    return draft


def _latency(document: Mapping[str, Any], draft: Draft, name: str, metric: str) -> None:
    values = document.get(name)
    if not isinstance(values, Mapping):
        return
    factor = _MS_OF.get(str(values.get("unit")).lower())
    if factor is None:
        draft.notes.append(f"{name} set aside: unit `{values.get('unit')}` is not a time")
        return
    statistics = {"mean": "avg"} if metric == "e2e" else {"mean": "avg", "p50": "p50", "p99": "p99"}
    for statistic, key in statistics.items():
        value = number_of(values.get(key))
        draft.put(f"{metric}_{statistic}_ms", value * factor if value else None)


def _load(config: object, draft: Draft) -> None:
    generator = at(config, "loadgen") or at(config, "perf_analyzer", "stimulus") or config
    if not isinstance(generator, Mapping):
        return
    rate = number_of(at(generator, "request_rate"))
    concurrency = count_of(at(generator, "concurrency"))
    if rate:
        pattern = str(first_of(generator, ("arrival_pattern", "request_rate_mode")) or "poisson")
        draft.put("workload", "constant-rate" if "constant" in pattern else "poisson")
        draft.put("request_rate_qps", rate)
    elif concurrency:
        draft.put("workload", "closed")
        draft.put("concurrency", concurrency)
    draft.put("warmup_requests", count_of(at(generator, "warmup_request_count")))
