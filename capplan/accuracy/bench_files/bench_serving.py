"""Summaries of the benchmark_serving family: `vllm bench serve`, SGLang's bench_serving, forks.

Latencies in keys that end in `_ms` are milliseconds; a fork writes the same keys without the
ending, in seconds. Arrays of single requests beside them (`ttfts`, `itls`) are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.accuracy.bench_files.numbers import count_of, first_of, is_unlimited, number_of
from capplan.accuracy.bench_files.row import Draft

_STATISTICS = {"mean": ("mean",), "p50": ("median", "p50"), "p99": ("p99",)}
_METRICS = {
    "ttft": ("ttft", ("mean", "p50", "p99")),
    "tpot": ("tpot", ("mean", "p50", "p99")),
    "itl": ("itl", ("mean",)),
    "e2e": ("e2el", ("mean",)),
}
# As `--metadata` or by wrapping scripts; the first that is there counts.
_DESCRIBED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("model", ("model_id", "model", "model_name", "served_model_name")),
    ("gpu", ("gpu_name", "gpu", "gpu_type", "accelerator", "hw", "hardware")),
    ("engine_version", ("engine_version", "vllm_version", "sglang_version", "version")),
    ("weight_dtype", ("weight_dtype", "quantization", "precision")),
    ("kv_dtype", ("kv_dtype", "kv_cache_dtype")),
    ("dataset", ("dataset_name", "dataset")),
)
_COUNTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("num_gpus", ("num_gpus", "gpu_count", "gpus")),
    ("tp", ("tp", "tensor_parallel_size", "tp_size")),
    ("pp", ("pp", "pipeline_parallel_size")),
    ("ep", ("ep", "ep_size")),
    ("max_num_seqs", ("max_num_seqs",)),
    ("max_num_batched_tokens", ("max_num_batched_tokens", "chunked_prefill_size")),
)


def is_bench_serving(document: Mapping[str, Any]) -> bool:
    return "output_throughput" in document and "request_throughput" in document


def read_bench_serving(document: Mapping[str, Any], place: str) -> Draft:
    backend = str(document.get("backend") or "")
    is_sglang = "sglang" in backend or "total_output_tokens_retokenized" in document
    draft = Draft("SGLang bench_serving" if is_sglang else "vllm bench serve", place)
    draft.put("engine", "SGLang" if is_sglang else _engine_of(backend))
    for column, names in _DESCRIBED:
        value = first_of(document, names)
        draft.put(column, value if isinstance(value, str) else None)
    for column, names in _COUNTED:
        draft.put(column, count_of(first_of(document, names)))
    _load(document, draft)
    _latencies(document, draft)
    draft.put("output_tok_s", number_of(document.get("output_throughput")))
    draft.put("req_s", number_of(document.get("request_throughput")))
    return draft


def _engine_of(backend: str) -> str:
    known = {"vllm": "vLLM", "tensorrt-llm": "TensorRT-LLM", "trt": "TensorRT-LLM", "tgi": "TGI"}
    return next((name for part, name in known.items() if part in backend.lower()), "")


def _load(document: Mapping[str, Any], draft: Draft) -> None:
    draft.completed = count_of(document.get("completed"))
    draft.num_failed = count_of(document.get("failed")) or 0
    draft.duration_s = number_of(document.get("duration"))
    draft.put("num_prompts", count_of(document.get("num_prompts")) or draft.completed)
    if draft.completed:
        for column, total in (("isl", "total_input_tokens"), ("osl", "total_output_tokens")):
            tokens = number_of(document.get(total))
            draft.put(column, tokens / draft.completed if tokens else None)
    rate, limit = document.get("request_rate"), count_of(document.get("max_concurrency"))
    asked = number_of(rate)
    if asked and not is_unlimited(rate):
        draft.put("workload", "poisson")
        draft.put("request_rate_qps", asked)
        burstiness = number_of(document.get("burstiness"))
        if burstiness and burstiness != 1.0:
            draft.notes.append(f"arrivals with burstiness {burstiness:g}, taken as Poisson")
        if limit and draft.completed and limit < draft.completed:
            draft.put("concurrency", limit)
            draft.notes.append(f"at most {limit} in flight beside the rate")
    elif limit:
        draft.put("workload", "closed")
        draft.put("concurrency", limit)
    else:
        draft.put("workload", "burst")


def _latencies(document: Mapping[str, Any], draft: Draft) -> None:
    for metric, (stem, statistics) in _METRICS.items():
        for statistic in statistics:
            for prefix in _STATISTICS[statistic]:
                for name in _spellings(prefix, stem):
                    value = number_of(document.get(name))
                    if value is not None and f"{metric}_{statistic}_ms" not in draft.cells:
                        factor = 1.0 if name.endswith("_ms") else 1e3
                        draft.put(f"{metric}_{statistic}_ms", value * factor)
    itls = document.get("itls")
    if isinstance(itls, list) and "itl_mean_ms" not in draft.cells:
        gaps = [float(gap) for row in itls if isinstance(row, list) for gap in row]
        draft.put("itl_mean_ms", sum(gaps) / len(gaps) * 1e3 if gaps else None)


def _spellings(prefix: str, stem: str) -> tuple[str, ...]:
    stems = (stem, "e2e_latency") if stem == "e2el" else (stem,)
    return tuple(f"{prefix}_{s}{ending}" for s in stems for ending in ("_ms", ""))
