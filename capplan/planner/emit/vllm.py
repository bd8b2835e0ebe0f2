"""A plan in the words of `vllm serve`, by version.

Names and spellings as in docs.vllm.ai, releases 0.5.3 to 0.29: `vllm serve` since 0.5.3; boolean
pairs (`--no-...`) for chunked prefill since 0.8.5, `=False` before; data parallelism since 0.8.3,
expert parallelism since 0.8, asynchronous scheduling since 0.10, decode context parallelism since
0.11.
"""

from __future__ import annotations

from capplan.errors import CapplanError
from capplan.planner.emit.options import Wanted, Words, known, refuse
from capplan.specs.engine import version_key

PORT = 8000
FIRST = "0.5.3"
_KV = ("fp8", "fp8_e4m3", "fp8_e5m2")
_KV_SINCE_0_11 = (*_KV, "fp8_ds_mla", "bfloat16")


def command(wanted: Wanted, version: str) -> tuple[str, ...]:
    """The program and the model."""
    if version_key(version) < version_key(FIRST):
        raise CapplanError(
            f"vLLM {version} is older than {FIRST}, the first that is written",
            hint=f"plan with {FIRST} or newer: --engine-version, or engine.version of the plan",
        )
    return ("vllm", "serve", wanted.model)


def image(version: str, vendor: str) -> str:
    if vendor == "amd":
        return f"vllm/vllm-openai-rocm:v{full(version)}"
    return f"vllm/vllm-openai:v{full(version)}"


def full(version: str) -> str:
    """`0.11` is released as 0.11.0."""
    return version if version.count(".") > 1 else f"{version}.0"


def options(wanted: Wanted, version: str) -> Words:
    """Every setting of the plan; what it leaves open is the version's default, and named."""
    words, flags, key = Words(), wanted.flags, version_key(version)
    words.add("--host", "0.0.0.0")
    words.add("--port", PORT)
    _degrees(words, wanted, version)
    if wanted.dtype:
        words.add("--dtype", wanted.dtype)
    if wanted.quantization:
        words.add("--quantization", wanted.quantization, "converted while loading")
    if wanted.kv_dtype:
        values = _KV_SINCE_0_11 if key >= (0, 11) else _KV
        words.add("--kv-cache-dtype", known(wanted.kv_dtype, values, "kv_cache_dtype"))
    words.setting("--max-model-len", flags.max_model_len, f"max_model_len{wanted.own_length}")
    words.setting("--max-num-seqs", flags.max_num_seqs, "max_num_seqs")
    words.setting(
        "--max-num-batched-tokens", flags.max_num_batched_tokens, "max_num_batched_tokens"
    )
    words.setting(
        "--gpu-memory-utilization", flags.gpu_memory_utilization, "gpu_memory_utilization"
    )
    if flags.block_size is not None:
        words.add("--block-size", flags.block_size)
    if flags.num_gpu_blocks is not None:
        words.add("--num-gpu-blocks-override", flags.num_gpu_blocks)
    _switches(words, wanted, version)
    return words


def _degrees(words: Words, wanted: Wanted, version: str) -> None:
    key = version_key(version)
    if wanted.tp > 1:
        words.add("--tensor-parallel-size", wanted.tp)
    if wanted.pp > 1:
        words.add("--pipeline-parallel-size", wanted.pp)
    if wanted.dp > 1:
        if key < (0, 8, 3):
            raise refuse("dp", f"vLLM {version}", "copies of the attention are known since 0.8.3")
        words.add("--data-parallel-size", wanted.dp)
    if wanted.ep > 1:
        if wanted.ep != wanted.tp * wanted.dp:
            ranks = wanted.tp * wanted.dp
            raise refuse(f"ep {wanted.ep}", "vLLM", f"it spreads experts over tp x dp = {ranks}")
        if key < (0, 8):
            raise refuse("ep", f"vLLM {version}", "expert parallelism is known since 0.8")
        words.add("--enable-expert-parallel")
    if wanted.dcp > 1:
        if key < (0, 11):
            raise refuse("dcp", f"vLLM {version}", "decode context parallel is known since 0.11")
        words.add("--decode-context-parallel-size", wanted.dcp)


def _switches(words: Words, wanted: Wanted, version: str) -> None:
    flags, key = wanted.flags, version_key(version)
    words.switch(
        "--enable-prefix-caching",
        # The V0 core has it off, and before 0.6.4 knows no `--no-...`.
        "--no-enable-prefix-caching" if key >= (0, 6, 4) else None,
        flags.enable_prefix_caching,
        "prefix caching",
    )
    words.switch(
        "--enable-chunked-prefill",
        "--no-enable-chunked-prefill" if key >= (0, 8, 5) else "--enable-chunked-prefill=False",
        flags.enable_chunked_prefill,
        "chunked prefill",
    )
    if flags.enable_chunked_prefill is False and (0, 8) <= key < (0, 10):
        words.notes.append(
            f"vLLM {version} chunks prefill whatever it is told (vllm issue 18547); 0.10 does not."
        )
    if key >= (0, 10):
        words.switch(
            "--async-scheduling",
            "--no-async-scheduling",
            flags.async_scheduling,
            "asynchronous scheduling",
        )
    elif flags.async_scheduling:
        raise refuse("asynchronous scheduling", f"vLLM {version}", "it came with 0.10")
    if flags.long_prefill_token_threshold:
        words.add("--long-prefill-token-threshold", flags.long_prefill_token_threshold)
    if flags.scheduling_policy:
        words.add("--scheduling-policy", flags.scheduling_policy)
