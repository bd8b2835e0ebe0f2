"""A plan in the words of `python3 -m sglang.launch_server`, 0.4 to 0.6.

Names from the server's own list of arguments (docs.sglang.ai): the overlap scheduler is on since
0.4; expert parallelism took `--enable-ep-moe` before 0.5; pipeline stages since 0.4.7. There,
`--tp-size` counts all GPUs of the server, those that attention copies share included.
"""

from __future__ import annotations

from capplan.errors import CapplanError
from capplan.planner.emit.options import Wanted, Words, known, refuse
from capplan.planner.emit.vllm import full
from capplan.specs.engine import version_key

PORT = 30000
FIRST = "0.4"
_KV = ("fp8_e4m3", "fp8_e5m2")


def command(wanted: Wanted, version: str) -> tuple[str, ...]:
    if version_key(version) < version_key(FIRST):
        raise CapplanError(
            f"SGLang {version} is older than {FIRST}, the first that is written",
            hint=f"plan with {FIRST} or newer: --engine-version, or engine.version of the plan",
        )
    return ("python3", "-m", "sglang.launch_server", f"--model-path={wanted.model}")


def image(version: str, vendor: str) -> str:
    tag = f"v{full(version)}"
    if vendor == "amd":
        return f"lmsysorg/sglang:{tag}-rocm630"
    # Images of 0.4 bear the CUDA version that they were built for.
    return f"lmsysorg/sglang:{tag}" + ("-cu124" if version_key(version) < (0, 5) else "")


def options(wanted: Wanted, version: str) -> Words:
    words, flags, key = Words(), wanted.flags, version_key(version)
    words.add("--host", "0.0.0.0")
    words.add("--port", PORT)
    _degrees(words, wanted, version)
    if wanted.dtype:
        words.add("--dtype", wanted.dtype)
    if wanted.quantization:
        words.add("--quantization", wanted.quantization, "converted while loading")
    if wanted.kv_dtype:
        name = "fp8_e4m3" if wanted.kv_dtype == "fp8" else wanted.kv_dtype
        words.add("--kv-cache-dtype", known(name, _KV, "kv_cache_dtype"))
    words.setting("--context-length", flags.max_model_len, f"context_length{wanted.own_length}")
    words.setting("--max-running-requests", flags.max_num_seqs, "max_running_requests")
    if flags.enable_chunked_prefill is False:
        words.add("--chunked-prefill-size", -1, "no chunks")
    else:
        words.setting(
            "--chunked-prefill-size", flags.max_num_batched_tokens, "chunked_prefill_size"
        )
    words.setting("--mem-fraction-static", flags.gpu_memory_utilization, "mem_fraction_static")
    if flags.block_size is not None and key >= (0, 4, 4):
        words.add("--page-size", flags.block_size)
    if flags.enable_prefix_caching is False:
        words.add("--disable-radix-cache")
    if flags.async_scheduling is False:
        words.add("--disable-overlap-schedule")
    return words


def _degrees(words: Words, wanted: Wanted, version: str) -> None:
    key = version_key(version)
    shared = wanted.tp * wanted.dp
    if shared > 1:
        words.add("--tp-size", shared)
    if wanted.dp > 1:
        words.add("--dp-size", wanted.dp)
        words.add("--enable-dp-attention")
    if wanted.pp > 1:
        if key < (0, 4, 7):
            raise refuse("pp", f"SGLang {version}", "pipeline stages are known since 0.4.7")
        words.add("--pp-size", wanted.pp)
    if wanted.ep > 1:
        if key < (0, 5):
            words.add("--enable-ep-moe")
        words.add("--ep-size", wanted.ep)
    if wanted.dcp > 1:
        raise refuse("dcp", "SGLang", "plan without decode context parallel, or for vLLM")
