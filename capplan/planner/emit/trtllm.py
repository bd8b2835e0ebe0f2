"""A plan in the words of `trtllm-serve` and its YAML file, TensorRT-LLM 1.0 and later.

Names of the LLM API (nvidia.github.io/TensorRT-LLM, `TorchLlmArgs`, `KvCacheConfig`): the PyTorch
backend is the default since 1.0; the file is given with `--extra_llm_api_options`, which later
versions also call `--config`. Attention data parallelism spreads requests over all ranks.
"""

from __future__ import annotations

from typing import Any

from capplan.errors import CapplanError
from capplan.planner.emit.options import Wanted, Words, known, refuse
from capplan.planner.emit.vllm import full
from capplan.specs.engine import version_key

PORT = 8000
FIRST = "1.0"
CONFIG_OPTION = "--extra_llm_api_options"


def command(wanted: Wanted, version: str) -> tuple[str, ...]:
    if version_key(version) < version_key(FIRST):
        raise CapplanError(
            f"TensorRT-LLM {version} is older than {FIRST}, the first that is written",
            hint="engines before it are built from a checkpoint first",
        )
    return ("trtllm-serve", wanted.model)


def image(version: str, vendor: str) -> str:
    if vendor != "nvidia":
        raise CapplanError(f"TensorRT-LLM does not run on {vendor}", hint="emit vllm or sglang")
    return f"nvcr.io/nvidia/tensorrt-llm/release:{full(version)}"


def options(wanted: Wanted, version: str) -> Words:
    del version  # the same names since 1.0
    words, flags = Words(), wanted.flags
    words.add("--host", "0.0.0.0")
    words.add("--port", PORT)
    words.add("--backend", "pytorch")
    if wanted.tp * wanted.dp > 1:
        words.add("--tp_size", wanted.tp * wanted.dp)
    if wanted.pp > 1:
        words.add("--pp_size", wanted.pp)
    if wanted.ep > 1:
        words.add("--ep_size", wanted.ep)
    if wanted.dcp > 1:
        raise refuse("dcp", "TensorRT-LLM", "plan without decode context parallel, or for vLLM")
    if wanted.quantization:
        raise refuse(
            f"converting weights to {wanted.quantization}",
            "trtllm-serve",
            "plan with a checkpoint that is stored so (`capplan models list`)",
        )
    words.setting("--max_seq_len", flags.max_model_len, f"max_seq_len{wanted.own_length}")
    words.setting("--max_batch_size", flags.max_num_seqs, "max_batch_size")
    words.setting("--max_num_tokens", flags.max_num_batched_tokens, "max_num_tokens")
    words.setting(
        "--kv_cache_free_gpu_memory_fraction",
        flags.gpu_memory_utilization,
        "free_gpu_memory_fraction",
    )
    return words


def config(wanted: Wanted) -> dict[str, Any]:
    """The YAML file: what the command line has no options for."""
    flags = wanted.flags
    cache: dict[str, Any] = {}
    if wanted.kv_dtype:
        name = "fp8" if wanted.kv_dtype.startswith("fp8") else wanted.kv_dtype
        cache["dtype"] = known(name, ("fp8", "nvfp4"), "kv_cache_dtype")
    if flags.enable_prefix_caching is not None:
        cache["enable_block_reuse"] = flags.enable_prefix_caching
    if flags.block_size is not None:
        cache["tokens_per_block"] = flags.block_size
    if flags.gpu_memory_utilization is not None:
        # The file stands above the command line, so it says the share too.
        cache["free_gpu_memory_fraction"] = flags.gpu_memory_utilization
    found: dict[str, Any] = {}
    if wanted.dtype:
        found["dtype"] = wanted.dtype
    if cache:
        found["kv_cache_config"] = cache
    if flags.enable_chunked_prefill is not None:
        found["enable_chunked_prefill"] = flags.enable_chunked_prefill
    if flags.max_num_seqs is not None:
        found["cuda_graph_config"] = {"enable_padding": True, "max_batch_size": flags.max_num_seqs}
    if wanted.dp > 1:
        if wanted.tp > 1:
            raise refuse(
                f"dp {wanted.dp} beside tp {wanted.tp}",
                "TensorRT-LLM",
                "its attention copies take one GPU each: tp 1",
            )
        found["enable_attention_dp"] = True
    if flags.async_scheduling is False:
        found["disable_overlap_scheduler"] = True
    return found
