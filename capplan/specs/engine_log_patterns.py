"""The phrases by which engines print what they allocate, over the versions that logs show.

Each figure has a ``phrase`` that names it and a ``value`` that reads it: a line with the phrase
and no value was cut, and is reported.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple


class Pattern(NamedTuple):
    phrase: re.Pattern[str]
    value: re.Pattern[str]
    of_ranks: Literal["min", "max"]  # which of several ranks decides


_NUMBER = r"(?P<number>-?\d[\d,]{0,17}(?:\.\d{1,9})?)"
_SIZE = _NUMBER + r"\s?(?P<unit>GiB|GB|MiB|MB)\b"


def _size(phrase: str, between: str, of_ranks: Literal["min", "max"]) -> Pattern:
    return Pattern(re.compile(phrase), re.compile(phrase + between + _SIZE), of_ranks)


def _count(phrase: str, between: str, after: str, of_ranks: Literal["min", "max"]) -> Pattern:
    # A number that ends the line may have been cut, unless what follows it is there.
    return Pattern(re.compile(phrase), re.compile(phrase + between + _NUMBER + after), of_ranks)


SIZES: dict[str, Pattern] = {
    # vLLM
    "weights": _size(r"(?:Model loading|Loading model weights) took", r"\s+", "max"),
    "visible": _size(r"total_gpu_memory \(", r"", "min"),
    "non_torch": _size(r"non_torch_memory takes", r"\s*", "max"),
    "activation_peak": _size(r"activation peak memory takes", r"\s*", "max"),
    "pool": _size(r"(?:Available KV cache memory:|memory reserved for KV Cache is)", r"\s*", "min"),
    "cuda_graphs": _size(r"Graph capturing finished in", r"[^,]{0,40},\s*took\s*", "max"),
    "cuda_graphs_estimate": _size(r"[Ee]stimated CUDA graph memory", r"[^\d-]{0,20}", "max"),
    "needed": _size(r"max seq len \(\d+\), \(?", r"", "max"),
    # SGLang
    "free_before": _size(r"Load weight begin\.", r".{0,40}?avail mem=", "min"),
    "free_after": _size(r"Load weight end\.", r".{0,300}?avail mem=", "min"),
    "load_usage": _size(r"Load weight end\.", r".{0,300}?mem usage=", "max"),
    "k_pool": _size(r"\bK size:", r"\s*", "min"),
    "v_pool": _size(r"\bV size:", r"\s*", "min"),
    "kv_pool": _size(r"\bKV size:", r"\s*", "min"),
    # TensorRT-LLM
    "trt_pool": _size(r"MemUsageChange\] Allocated", r"\s*", "min"),
    "trt_total": _size(r"max tokens in paged kv cache: total:", r"\s*", "min"),
    "trt_free": _size(r"max tokens in paged kv cache: total:", r".{0,40}?available:\s*", "min"),
}
COUNTS: dict[str, Pattern] = {
    "kv_tokens": _count(r"GPU KV cache size:", r"\s*", r"(?= tokens)", "min"),
    "gpu_blocks": _count(r"# (?:GPU|cuda) blocks:", r"\s*", r"(?=,|\s|$)", "min"),
    "max_concurrency": _count(
        r"Maximum concurrency for [\d,]+ tokens per request:", r"\s*", r"(?=x)", "min"
    ),
    "needed_length": _count(r"max seq len \(", r"", r"(?=\))", "max"),
    "stored_tokens": _count(r"can be stored in KV cache \(", r"", r"(?=\))", "min"),
    "estimated_max_length": _count(r"maximum model length is", r"\s*", r"(?=\.|,|\s|$)", "min"),
    "sglang_tokens": _count(r"max_total_num_tokens=", r"", r"(?=,|\s|$)", "min"),
    "trt_blocks": _count(r"blocks in KV cache primary pool:", r"\s*", r"(?=,|\s|$)", "min"),
    "trt_tokens": _count(r"Max tokens in paged KV cache:", r"\s*", r"(?=\.|,|\s|$)", "min"),
    "tokens_per_block": _count(r"Number of tokens per block:", r"\s*", r"(?=\.|,|\s|$)", "max"),
}

_VERSION = r"v?(?P<version>\d{1,4}\.\d{1,4}[\w.+-]{0,40})"
ENGINE_MARKS: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...] = (
    (
        "vllm",
        (
            re.compile(r"vLLM API server version " + _VERSION),
            re.compile(r"LLM engine \(" + _VERSION),
            re.compile(r"\bvllm[/.]|# (?:GPU|cuda) blocks:|GPU KV cache size:"),
        ),
    ),
    (
        "sglang",
        (
            re.compile(r"sglang[=/ ]{1,3}(?:version )?" + _VERSION, re.IGNORECASE),
            re.compile(
                r"server_args=ServerArgs\(|Load weight (?:begin|end)\.|max_total_num_tokens="
            ),
        ),
    ),
    (
        "tensorrt-llm",
        (
            re.compile(r"TensorRT-LLM version:? " + _VERSION),
            re.compile(r"\[TensorRT-LLM\]|paged kv cache", re.IGNORECASE),
        ),
    ),
)
RUN_STARTS = (
    re.compile(r"vLLM API server version|server_args=ServerArgs\(|TensorRT-LLM version"),
    re.compile(r"Initializing an? (?:V\d )?LLM engine|Load weight begin\. .*\bTP0\b"),
)

SETTING_LINES = re.compile(r"args|ServerArgs|Namespace\(|config: ?model=|LLM engine")
SETTING = re.compile(
    r"(?<![\w.])['\"]?(?P<name>[a-z_]{2,40})['\"]?\s?[=:]\s?"
    r"(?P<value>'[^']{0,300}'|\"[^\"]{0,300}\"|[\w.:/+-]{1,300})(?=[,\s)}\]]|$)"
)
SETTING_NAMES = {
    "model": "model",
    "model_tag": "model",
    "model_path": "model",
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "dtype": "dtype",
    "kv_cache_dtype": "kv_dtype",
    "quantization": "quantization",
    "gpu_memory_utilization": "memory_share",
    "mem_fraction_static": "memory_share",
    "free_gpu_memory_fraction": "memory_share",
    "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "context_length": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_running_requests": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "chunked_prefill_size": "max_num_batched_tokens",
    "block_size": "block_size",
    "page_size": "block_size",
    "enforce_eager": "enforce_eager",
    "enable_prefix_caching": "prefix_caching",
}
GPU_NAMES = re.compile(
    r"(?:device_name[=:]\s?['\"]?|\b)(?P<gpu>(?:NVIDIA|Tesla|AMD_Instinct|AMD Instinct)[ _-]"
    r"(?:GeForce[ _])?(?:RTX[ _])?[A-Z]{0,3}\d{1,4}[A-Za-z]{0,3}"
    r"(?:[ _-](?:\d{2,3}GB|HBM\d\w?|PCIe|SXM\d?|NVL))*)"
)
