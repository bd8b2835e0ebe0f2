"""What trtllm-bench sets where nobody says: batch and tokens a step, from memory and lengths.

NVIDIA/TensorRT-LLM tensorrt_llm/bench/build/tuning.py (`calc_engine_setting`, `finetune_setting`;
the same in 0.17 and 1.0) and, for its PyTorch backend, bench/benchmark/utils/general.py: without
chunked prefill the longest prompt and a batch fit into a step. All GPUs of a run are counted as one
memory, also where the attention is data parallel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_SEQS, _MOST_TOKENS = 4096, 32_768
_LEAST_SEQS, _LEAST_TOKENS = 64, 2048


@dataclass(frozen=True)
class BenchLimits:
    """`max_batch_size` and `max_num_tokens` of one rank."""

    max_batch_size: int
    max_num_tokens: int


def bench_limits(
    free_bytes: float,
    kv_bytes_per_token: float,
    prompt_tokens: float,
    output_tokens: float,
    pp: int = 1,
    memory_fraction: float = 0.95,
) -> BenchLimits:
    """``free_bytes`` are all that weights leave of all GPUs, ``kv_bytes_per_token`` of all layers.

    The most requests of full length that the cache holds make the batch; a step has the prompts
    that so many answers make room for.
    """
    length = prompt_tokens + output_tokens
    held = memory_fraction * free_bytes / (kv_bytes_per_token * length)
    seqs = min(held, _MOST_SEQS) / pp
    tokens = min(seqs * (1 + prompt_tokens / output_tokens), _MOST_TOKENS)
    return BenchLimits(
        max(_LEAST_SEQS, _rounded(seqs, ((256, 32), (1024, 128), (math.inf, 256)))),
        max(_LEAST_TOKENS, _rounded(tokens, ((4096, 256), (8192, 512), (math.inf, 1024)))),
    )


def _rounded(value: float, steps: tuple[tuple[float, int], ...]) -> int:
    """Up to a multiple of the step of the first bound that it lies below."""
    step = next(step for below, step in steps if value < below)
    return step * math.ceil(value / step)
