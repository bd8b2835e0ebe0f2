"""What the kernels of old engines, and of builds that nobody tuned, reach of an accelerator."""

from __future__ import annotations

from dataclasses import replace
from math import hypot
from pathlib import Path

import pytest
from test_accuracy import row

from capplan.accuracy.load import load_of
from capplan.accuracy.server import overheads_of, server_of
from capplan.accuracy.settings import settings_of
from capplan.cli.inputs import Inputs
from capplan.cli.serving import ServingOptions, serving_of
from capplan.performance.batch import Chunk
from capplan.performance.engine_families import engine_kernels
from capplan.performance.overheads import PLAIN_KERNELS, EngineKernels, EngineOverheads
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.planner.serving import Serving
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.engine_performance import engine_performance

H100 = load_hardware("h100-sxm-80gb").spec
OLD = EngineKernels(decode_groups=(1, 8))


def steps(model: str, kernels: EngineKernels, tp: int = 1) -> StepModel:
    rates = derated_rates(H100, tp, engine=kernels)
    return StepModel(load_model(model).spec, H100, rates, tp=tp, kv_dtype="bf16")


def read_s(model: str, kernels: EngineKernels, tp: int = 1) -> float:
    """Decode attention for one position of context."""
    return steps(model, kernels, tp).attention.decode_s(0, {None: 1.0})


def test_heads_of_other_groups_read_by_themselves() -> None:
    """Four query heads to a KV head: 2 x 32 heads x (128 + 128) FLOP a position, on vector units.

    67 TFLOP/s is the data sheet's FP32 peak of an H100 SXM.
    """
    plain = steps("llama-3-8b", PLAIN_KERNELS).rates.kernels
    assert plain is not None
    share = plain.architecture.attention.vector
    vector_s = 32 * 2 * 32 * 256 / (share * 67e12)  # 32 layers
    streamed_s = 32 * 2 * 8 * 128 * 2 / plain.attention("bf16").decode_bytes_per_s
    assert read_s("llama-3-8b", OLD) == pytest.approx(hypot(streamed_s, vector_s), rel=1e-6)
    assert read_s("llama-3-8b", OLD) > 1.5 * read_s("llama-3-8b", PLAIN_KERNELS)


@pytest.mark.parametrize(
    ("model", "tp"), [("llama-2-7b", 1), ("llama-2-70b", 1), ("llama-2-70b", 8)]
)
def test_heads_of_known_groups_read_together(model: str, tp: int) -> None:
    """One and eight query heads to a KV head, also where ranks hold one KV head each."""
    assert read_s(model, OLD, tp) == read_s(model, PLAIN_KERNELS, tp)


def test_factors_slow_what_they_are_of() -> None:
    kernels = EngineKernels(compute=0.5, bandwidth=0.5, prefill=0.5, latency=4.0, link=0.5)
    slow, plain = steps("llama-3-8b", kernels, 2), steps("llama-3-8b", PLAIN_KERNELS, 2)
    reads = plain.uniform_reads(8, 2000)
    assert slow.decode(8, reads).gemm_s > 1.5 * plain.decode(8, reads).gemm_s
    assert slow.decode(8, reads).attention_s == plain.decode(8, reads).attention_s
    assert slow.decode(8, reads).collective_s > 3 * plain.decode(8, reads).collective_s
    prefill = [m.by_tokens(8192, has_decodes=0, has_prefill=1).gemm_s for m in (slow, plain)]
    assert 1.9 < prefill[0] / prefill[1] < 2.05


def test_kernels_follow_version_maker_and_build() -> None:
    vllm, trt = engine_performance("vllm", (0, 6)), engine_performance("tensorrt-llm", (0, 11))
    first = engine_kernels(vllm, (0, 6, 1), "AMD")
    later = engine_kernels(vllm, (0, 6, 3), "AMD", chunks_prefill=True)
    assert (first.decode_groups, later.decode_groups) == ((), None)
    assert first.prefill == 1.0
    assert later.prefill < 0.1
    assert engine_kernels(vllm, (0, 6, 1), "NVIDIA") == PLAIN_KERNELS
    assert engine_kernels(vllm, (0, 6, 1), "AMD", is_vendors_build=True) == PLAIN_KERNELS
    assert engine_kernels(vllm, None, "AMD") == PLAIN_KERNELS  # a version that nobody stated
    assert engine_kernels(trt, (0, 11), "NVIDIA").decode_groups == (1, 8)
    assert engine_kernels(trt, (0, 12), "NVIDIA") == PLAIN_KERNELS


def test_versions_that_scripts_install(tmp_path: Path) -> None:
    """LLM-Inference-Bench: TensorRT-LLM 0.11, on GH200 0.12; vLLM 0.6.1 on MI300X."""
    cells = {"source": "github.com/argonne-lcf/LLM-Inference-Bench x", "engine_version": "",
             "source_date": "2024-10", "kv_dtype": "fp16", "weight_dtype": "fp16"}  # fmt: skip
    trt = {**cells, "engine": "TensorRT-LLM", "model": "meta-llama/Meta-Llama-3-8B"}
    old = settings_of(row(tmp_path, **trt, gpu="H100-SXM"))
    new = settings_of(row(tmp_path, **trt, gpu="GH200"))
    assert overheads_of(old).kernels.decode_groups == (1, 8)
    assert overheads_of(new).kernels == PLAIN_KERNELS
    amd = settings_of(row(tmp_path, **{**trt, "engine": "vLLM"}, gpu="MI300X"))
    assert amd.engine.version == (0, 6, 1)
    assert overheads_of(amd).kernels.decode_groups == ()
    assert ("kernels", "of vLLM's own build") in {(a.what, a.value) for a in amd.assumptions}


@pytest.mark.parametrize(
    ("engine", "version", "gpu", "hardware"),
    [
        ("vllm", "0.6.1", "MI300X", "mi300x"),
        ("vllm", "0.6.3", "MI300X", "mi300x"),
        ("vllm", "0.12.0", "H100-SXM", "h100-sxm-80gb"),
        ("tensorrt-llm", "0.11", "H100-SXM", "h100-sxm-80gb"),
        ("tensorrt-llm", "1.1.0", "H100-SXM", "h100-sxm-80gb"),
    ],
)
def test_a_plan_is_simulated_as_a_measured_run_is(
    tmp_path: Path, engine: str, version: str, gpu: str, hardware: str
) -> None:
    """Host times and kernels of the version, not of the first of its profile."""
    served = _serving(engine, version, hardware)
    cells = {"engine_version": version, "model": "meta-llama/Llama-3.1-8B-Instruct",
             "weight_dtype": "bf16", "gpu": gpu}  # fmt: skip
    names = {"vllm": "vLLM", "tensorrt-llm": "TensorRT-LLM"}
    settings = settings_of(row(tmp_path, **cells, engine=names[engine]))
    measured = server_of(settings).model
    as_measured = replace(
        served, enable_chunked_prefill=settings.chunked_prefill, ep=settings.ep
    ).steps
    reads = measured.uniform_reads(16, 1000)
    chunks = [Chunk(256, 1024)]
    assert as_measured.decode(16, reads) == measured.decode(16, reads)
    assert as_measured.mixed(16, reads, chunks) == measured.mixed(16, reads, chunks)


def test_a_version_that_is_not_stated_is_the_newest() -> None:
    """As the assumption says: TensorRT-LLM's profile reaches from 0.9 to 1.3."""
    newest = _serving("tensorrt-llm", None, "h100-sxm-80gb")
    assert newest.overheads == _serving("tensorrt-llm", "1.3", "h100-sxm-80gb").overheads
    assert newest.overheads != _serving("tensorrt-llm", "0.9", "h100-sxm-80gb").overheads


@pytest.mark.parametrize(
    ("hardware", "model", "chunked"),
    [
        ("h100-sxm-80gb", "llama-3.1-8b", True),  # 131,072 tokens of context
        ("h100-sxm-80gb", "llama-3-8b", False),  # 8,192
        ("mi300x", "llama-3.1-8b", False),
    ],
)
def test_the_old_core_chunks_prompts_of_long_contexts(
    hardware: str, model: str, chunked: bool
) -> None:
    """vLLM 0.5.4 to 0.7 (vllm/engine/arg_utils.py): above 32K of context, not on ROCm (#11146)."""
    assert _serving("vllm", "0.7.2", hardware, model).config.enable_chunked_prefill is chunked


def _serving(
    engine: str, version: str | None, hardware: str, model: str = "llama-3.1-8b"
) -> Serving:
    nothing: dict[str, None] = dict.fromkeys(ServingOptions._fields)
    options = ServingOptions(**nothing)._replace(
        model=model, hardware=hardware, engine=engine, engine_version=version
    )
    return serving_of(options, None, 1, Inputs())


@pytest.mark.parametrize(
    ("version", "gpu", "chunked", "tokens"),
    [
        ("0.6.3", "H100-SXM", True, 512),
        ("0.6.5", "H100-SXM", True, 2048),
        ("0.6.3", "MI300X", True, 512),
        ("0.6.6", "MI300X", False, 131_072),
    ],
)
def test_chunks_of_early_vllm(
    tmp_path: Path, version: str, gpu: str, chunked: bool, tokens: int
) -> None:
    """vllm-project/vllm#10544 made 2,048 of 512; #11146 ended chunks by default on ROCm."""
    found = settings_of(
        row(tmp_path, engine="vLLM", engine_version=version, gpu=gpu, tp="8",
            model="meta-llama/Llama-3.1-405B-Instruct", weight_dtype="fp8", num_gpus="8")
    )  # fmt: skip
    assert (found.chunked_prefill, found.max_num_batched_tokens) == (chunked, tokens)


def test_an_eager_run_is_launched_layer_by_layer(tmp_path: Path) -> None:
    cells = {"engine": "vLLM", "engine_version": "0.6.3", "gpu": "H100-SXM"}
    eager = server_of(settings_of(row(tmp_path, **cells, cuda_graph_max_bs="none (eager)")))
    graphs = server_of(settings_of(row(tmp_path, **cells)))
    assert eager.model.engine.cuda_graph_max_bs == 0
    reads = graphs.model.uniform_reads(1, 1000)
    assert eager.model.decode(1, reads).host_s > graphs.model.decode(1, reads).host_s


def test_loads_of_dstacks_scripts(tmp_path: Path) -> None:
    """A client for each replica; answers about sonnets end before the 150 tokens asked for."""
    batch = {"workload": "offline-batch", "concurrency": "4", "num_prompts": "4", "num_gpus": "8",
             "tp": "4", "range_ratio": "", "dataset": "synthetic fixed"}  # fmt: skip
    noted = "two TP4 replicas each given batch_size prompts; already summed"
    assert load_of(row(tmp_path, **batch, notes=noted)).num_requests == 8
    assert load_of(row(tmp_path, **batch)).num_requests == 4
    burst = {"workload": "burst", "concurrency": "64", "num_prompts": "64", "dataset": "sonnet",
             "range_ratio": "", "isl": "81"}  # fmt: skip
    ended = [output for _, output in load_of(row(tmp_path, **burst, osl="60")).lengths()]
    asked = [output for _, output in load_of(row(tmp_path, **burst, osl="150")).lengths()]
    assert sum(ended) / len(ended) == pytest.approx(60, abs=1)
    assert max(ended) > 75
    assert set(asked) == {150}


def test_polyserve_cuts_answers(tmp_path: Path) -> None:
    """Its preset `sharegpt` (polyserve/calibrate/workload.py) has decode_tokens=512."""
    cells = {"dataset": "ShareGPT natural stop (mean prompt 158)", "range_ratio": "",
             "isl": "158", "osl": "460", "num_prompts": "64"}  # fmt: skip
    answers = [output for _, output in load_of(row(tmp_path, **cells)).lengths()]
    assert sum(answers) / len(answers) == pytest.approx(460, abs=1)
    assert max(answers) < 1.1 * 512


@pytest.mark.parametrize(("dtype", "bits"), [("nvfp4", 4.5), ("fp8", 8), ("fp8-block128", 16)])
def test_tokens_travel_in_the_format_of_the_experts(dtype: str, bits: float) -> None:
    """TensorRT-LLM's run_post_quant_allgather: what goes is quantized, what comes back is not."""
    hardware = load_hardware("rtx-pro-6000-server").spec
    model, rates = load_model("qwen3-30b-a3b").spec, derated_rates(hardware, 1, dp=8)
    assert rates.exchange is not None
    # Without what short messages lose, which does not grow with the bytes.
    rates = replace(rates, exchange=replace(rates.exchange, half_bytes=0.0))
    plain, packed = (
        StepModel(model, hardware, rates, dp=8, ep=8, dtype=dtype, kv_dtype="fp8",
                  engine=EngineOverheads(quantizes_dispatch=quantizes))
        for quantizes in (False, True)
    )  # fmt: skip
    work = {"has_decodes": 0.0, "has_prefill": 0.0}

    def moved_s(steps: StepModel) -> float:  # without the latencies
        return steps.by_tokens(2e6, **work).collective_s - steps.by_tokens(1e6, **work).collective_s

    assert moved_s(packed) == pytest.approx((bits / 16 + 1) / 2 * moved_s(plain))
