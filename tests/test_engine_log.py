"""Start-up logs: what is sound is read, what was cut is listed, nothing is a traceback.

The logs here are written by us, in the engines' words.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.specs.engine_log import EngineLog, read_engine_log

GIB = 2**30

VLLM_V1 = """\
INFO 04-02 10:00:01 [api_server.py:1] vLLM API server version 0.19.0
INFO 04-02 10:00:01 [utils.py:2] non-default args: {'model': 'example/Llama-3.1-8B', \
'max_model_len': 8192, 'gpu_memory_utilization': 0.95, 'tensor_parallel_size': 1}
INFO 04-02 10:00:09 [core.py:3] Initializing a V1 LLM engine (v0.19.0) with config: \
model='example/Llama-3.1-8B', dtype=torch.bfloat16, max_seq_len=8192, quantization=None, \
kv_cache_dtype=auto, tensor_parallel_size=1, pipeline_parallel_size=1
INFO 04-02 10:00:10 [moe.py:4] config for device_name=NVIDIA_H100_80GB_HBM3.json
INFO 04-02 10:00:31 [gpu_model_runner.py:5] Model loading took 14.99 GiB memory and 2.5 seconds
DEBUG 04-02 10:00:41 [gpu_worker.py:6] non_torch_memory takes 0.25GiB; PyTorch activation peak \
memory takes 1.89GiB
INFO 04-02 10:00:42 [gpu_worker.py:7] Available KV cache memory: 58.11 GiB
INFO 04-02 10:00:42 [kv_cache_utils.py:8] GPU KV cache size: 476,016 tokens
INFO 04-02 10:00:42 [kv_cache_utils.py:9] Maximum concurrency for 8,192 tokens per request: 58.11x
INFO 04-02 10:00:55 [gpu_model_runner.py:5] Graph capturing finished in 12 secs, took 0.48 GiB
"""
VLLM_V0 = """\
INFO 11-05 llm_engine.py:237] Initializing an LLM engine (v0.6.4.post1) with config: \
model='example/70B', max_seq_len=131072, tensor_parallel_size=2, dtype=torch.bfloat16
(VllmWorkerProcess pid=7) INFO 11-05 model_runner.py:1] Loading model weights took 16.4605 GB
INFO 11-05 model_runner.py:1] Loading model weights took 16.4610 GB
INFO 11-05 worker.py:2] the current vLLM instance can use total_gpu_memory (139.72GiB) x \
gpu_memory_utilization (0.95) = 132.73GiB; model weights take 16.46GiB; non_torch_memory takes \
7.71GiB; PyTorch activation peak memory takes 1.21GiB; the rest of the memory reserved for KV \
Cache is 107.35GiB.
(VllmWorkerProcess pid=7) INFO 11-05 worker.py:2] the rest of the memory reserved for KV Cache is \
110.52GiB.
INFO 11-05 gpu_executor.py:3] # GPU blocks: 175884, # CPU blocks: 6553
"""
REFUSED = """\
ERROR core.py:9] ValueError: To serve at least one request with the models's max seq len (32768), \
(2.00 GiB KV cache is needed, which is larger than the available KV cache memory (0.78 GiB). Based \
on the available memory, the estimated maximum model length is 12768.
"""
SGLANG = """\
[2025-05-29 00:00:01] server_args=ServerArgs(model_path='example/8B', tp_size=2, \
mem_fraction_static=0.87, context_length=None, dtype='auto', kv_cache_dtype='auto')
[2025-05-29 00:00:05 TP0] Load weight begin. avail mem=139.20 GB
[2025-05-29 00:00:05 TP1] Load weight begin. avail mem=139.10 GB
[2025-05-29 00:00:15 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail \
mem=124.23 GB, mem usage=14.98 GB.
[2025-05-29 00:00:16 TP0] KV Cache is allocated. #tokens: 871371, K size: 53.18 GB, V size: 53.18 GB
[2025-05-29 00:00:20 TP0] max_total_num_tokens=871371, chunked_prefill_size=8192, \
max_running_requests=2048, context_len=8192
"""
TENSORRT = """\
[TensorRT-LLM] TensorRT-LLM version: 0.13.0
[TensorRT-LLM][INFO] Memory usage when calculating max tokens in paged kv cache: total: 39.39 GiB, \
available: 21.89 GiB
[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 631
[TensorRT-LLM][INFO] Max tokens in paged KV cache: 40384. Allocating 21172846592 bytes.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 19.72 GiB for max tokens in paged KV cache (40384).
[TensorRT-LLM][INFO] Number of tokens per block: 64.
"""
LOGS = [VLLM_V1, VLLM_V0, REFUSED, SGLANG, TENSORRT]


def gib(log: EngineLog, name: str) -> float:
    return log.sizes[name] / GIB


def test_vllm_v1() -> None:
    log = read_engine_log(VLLM_V1)
    assert (log.engine, log.version, log.gpu) == ("vllm", "0.19.0", "NVIDIA H100 80GB HBM3")
    assert gib(log, "weights") == pytest.approx(14.99)
    assert gib(log, "pool") == pytest.approx(58.11)
    assert gib(log, "non_torch") == pytest.approx(0.25)
    assert gib(log, "activation_peak") == pytest.approx(1.89)
    assert gib(log, "cuda_graphs") == pytest.approx(0.48)
    assert log.counts == {"kv_tokens": 476016, "max_concurrency": 58.11}
    assert log.settings["model"] == "example/Llama-3.1-8B"
    assert log.settings["dtype"] == "bfloat16"
    assert log.setting_number("memory_share") == 0.95
    assert log.setting_number("max_model_len") == 8192
    assert not log.unread


def test_of_two_ranks_the_smallest_pool_and_the_largest_load_decide() -> None:
    log = read_engine_log(VLLM_V0)
    assert log.version == "0.6.4.post1"
    assert gib(log, "pool") == pytest.approx(107.35)
    assert gib(log, "weights") == pytest.approx(16.461)
    assert gib(log, "visible") == pytest.approx(139.72)
    assert log.counts["gpu_blocks"] == 175884
    assert set(log.differing_ranks) == {"pool", "weights"}


def test_a_refusal() -> None:
    log = read_engine_log(REFUSED)
    assert gib(log, "needed") == 2.0
    assert log.counts == {"needed_length": 32768, "estimated_max_length": 12768}


def test_sglang() -> None:
    log = read_engine_log(SGLANG)
    assert log.engine == "sglang"
    assert gib(log, "free_before") == pytest.approx(139.1)
    assert gib(log, "free_after") == pytest.approx(124.23)
    assert gib(log, "load_usage") == pytest.approx(14.98)
    assert gib(log, "k_pool") == gib(log, "v_pool") == pytest.approx(53.18)
    assert log.counts["sglang_tokens"] == 871371
    assert log.settings["tp"] == "2"
    assert "max_model_len" not in log.settings  # None is no statement


def test_tensorrt_llm() -> None:
    log = read_engine_log(TENSORRT)
    assert (log.engine, log.version) == ("tensorrt-llm", "0.13.0")
    assert gib(log, "trt_free") == pytest.approx(21.89)
    assert log.counts["trt_blocks"] == 631
    assert log.counts["tokens_per_block"] == 64


def test_of_two_runs_the_last_is_read() -> None:
    first = VLLM_V1.replace("58.11 GiB", "12.00 GiB")
    log = read_engine_log(first + VLLM_V1)
    assert log.num_runs == 2
    assert gib(log, "pool") == pytest.approx(58.11)
    assert not log.differing_ranks


def test_a_cut_line_is_listed() -> None:
    log = read_engine_log(VLLM_V1.partition("58.11 GiB")[0] + "58.1")
    assert "pool" not in log.sizes
    assert log.unread == (
        "pool: INFO 04-02 10:00:42 [gpu_worker.py:7] Available KV cache memory: 58.1",
    )


def test_an_empty_or_foreign_text_has_no_facts() -> None:
    for text in ("", "\n\n", "hello", "\x00\x1b[", "GiB " * 1000):
        assert read_engine_log(text).is_empty


def coloured(text: str) -> str:
    return "".join(f"\x1b[1;36m(EngineCore_0 pid=3)\x1b[0;0m {li}\r\n" for li in text.splitlines())


@pytest.mark.parametrize("text", LOGS)
def test_colours_and_prefixes_change_nothing(text: str) -> None:
    plain, painted = read_engine_log(text), read_engine_log(coloured(text))
    assert (painted.sizes, painted.counts) == (plain.sizes, plain.counts)
    assert (painted.settings, painted.version) == (plain.settings, plain.version)


@given(st.sampled_from(LOGS), st.integers(0, 1500))
def test_a_cut_log_says_no_more_than_the_whole(text: str, end: int) -> None:
    whole, cut = read_engine_log(text), read_engine_log(text[:end])
    assert set(cut.sizes) <= set(whole.sizes)
    for name, size in cut.sizes.items():
        # A size has its unit behind it, so a shortened number is never taken for a whole one.
        assert size in (whole.sizes[name], size)
        if name not in whole.differing_ranks:
            assert size == whole.sizes[name]


LINES = st.sampled_from([line for text in LOGS for line in text.splitlines()])
DAMAGED = st.builds(lambda line, at, tail: line[at:] + tail, LINES, st.integers(0, 60), st.text())


@given(st.lists(DAMAGED, max_size=12))
def test_interleaved_and_damaged_lines_never_fail(lines: list[str]) -> None:
    log = read_engine_log("\n".join(lines))
    assert all(isinstance(size, float) for size in log.sizes.values())
    assert len(log.unread) <= 20
    assert all(text.isprintable() for text in log.unread)


@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    read_engine_log(text)
