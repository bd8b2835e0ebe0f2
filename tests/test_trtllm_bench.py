"""trtllm-bench's own limits: values worked out by hand from its tuning.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_accuracy import row

from capplan.accuracy.benchmarks.trtllm_bench import BenchLimits, bench_limits
from capplan.accuracy.settings import settings_of

_GIB = 2**30


@pytest.mark.parametrize(
    ("free_gib", "lengths", "pp", "limits"),
    [
        # 0.95 x 100 GiB / 100 KiB hold 996,147 tokens: 3,891 requests of 256, 3,891 x 2 tokens.
        (100, (128, 128), 1, BenchLimits(4096, 8192)),
        # 45.28 requests of 22,000: the least batch and the fewest tokens.
        (100, (20_000, 2000), 1, BenchLimits(64, 2048)),
        # 457.8 requests of 2,176, with 17 tokens each a step.
        (100, (2048, 128), 1, BenchLimits(512, 8192)),
        # 398.5 requests of 2,500 in two stages: 199.2 each.
        (100, (500, 2000), 2, BenchLimits(224, 2048)),
        # 38,912 requests: 4,096 at most, and 32,768 tokens.
        (1000, (2048, 128), 1, BenchLimits(4096, 32_768)),
    ],
)
def test_as_its_heuristics_have_it(
    free_gib: float, lengths: tuple[int, int], pp: int, limits: BenchLimits
) -> None:
    assert bench_limits(free_gib * _GIB, 100 * 1024, *lengths, pp) == limits


def test_offline_runs_of_tensorrt_llm_have_them(tmp_path: Path) -> None:
    """Mixtral 8x7B in FP8 on one H100: some 30 GB for 65,536 bytes a token of 4,096."""
    cells = {"engine": "TensorRT-LLM", "engine_version": "0.17", "gpu": "H100-SXM", "tp": "1",
             "model": "mistralai/Mixtral-8x7B-v0.1", "weight_dtype": "fp8", "kv_dtype": "",
             "isl": "2048", "osl": "2048", "dataset": "", "range_ratio": ""}  # fmt: skip
    offline = settings_of(row(tmp_path, **cells, workload="offline"))
    assert (offline.max_num_seqs, offline.max_num_batched_tokens) == (160, 2048)
    server = settings_of(row(tmp_path, **cells, workload="closed"))
    assert (server.max_num_seqs, server.max_num_batched_tokens) == (2048, 8192)
    stated = row(tmp_path, **cells, workload="offline", max_num_seqs="96")
    assert settings_of(stated).max_num_seqs == 96
