"""Runs on a server that has seen their prompts; runs whose estimate of memory says no."""

from __future__ import annotations

from measured_rows import poisson_run

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.accuracy.warm_cache import finds_its_prompts
from capplan.specs.mixers import Attention

_NOTE = "seed 42; QPS run in the order 32,16,8,4,1 on one server"


def _run(**cells: str) -> MeasuredRun:
    plain = {"num_prompts": "60", "isl": "2000", "osl": "50", "dataset": "random"}
    return poisson_run(**plain | {"prefix_caching": "on", "settings_notes": _NOTE} | cells)


def _emulated(run: MeasuredRun) -> dict[str, float]:
    settings = settings_of(run)
    return emulate(settings, load_of(run), server_of(settings)).metrics


def test_all_but_the_first_rate_of_a_sweep_find_their_prompts() -> None:
    assert finds_its_prompts(_run())
    assert not finds_its_prompts(_run(request_rate_qps="32"))
    assert not finds_its_prompts(_run(prefix_caching="off"))
    assert not finds_its_prompts(_run(settings_notes=""))


def test_a_benchmark_that_repeats_its_prompts_finds_them() -> None:
    """AccelMark: several runs at each rate, the same prompts on one engine."""
    cells = {"dataset": "sharegpt_standard_v1", "settings_notes": ""}
    assert finds_its_prompts(_run(**cells))
    assert not finds_its_prompts(_run(**cells, prefix_caching="off"))
    assert not finds_its_prompts(_run(**cells, workload="offline"))


def test_a_prompt_in_the_cache_costs_a_block_instead_of_its_length() -> None:
    warm, cold = _emulated(_run()), _emulated(_run(settings_notes=""))
    assert warm["ttft_p50_ms"] < 0.6 * cold["ttft_p50_ms"]
    assert warm["ttft_p99_ms"] < 0.6 * cold["ttft_p99_ms"]
    # The context is there as before: a decode step reads as much.
    assert abs(warm["tpot_mean_ms"] / cold["tpot_mean_ms"] - 1) < 0.25
    assert abs(warm["req_s"] / cold["req_s"] - 1) < 0.05


def test_weights_that_do_not_fit_the_stated_gpus_take_more() -> None:
    one = settings_of(_run(model="Qwen/Qwen3-235B-A22B-FP8", params_b="235.1", weight_dtype="fp8"))
    assert (one.tp, one.num_replicas) == (4, 1)  # 235 GB on GPUs of 80 GB
    assert any("do not fit" in a.value for a in one.assumptions)


def test_a_run_that_took_place_had_a_pool_for_more_than_one_request() -> None:
    """gpt-oss-120b on one H100: the likely activation peak leaves nothing."""
    run = _run(
        model="openai/gpt-oss-120b", params_b="116.8", weight_dtype="mxfp4",
        engine_version="0.10.2", max_model_len="32768", gpu_memory_fraction="0.9",
    )  # fmt: skip
    settings = settings_of(run)
    server = server_of(settings)
    tokens, note = server.kv_tokens(400, 1500)
    beside = server.deployment.pool_beside_weights.available_bytes
    assert note is not None
    assert "would not have run" in note
    assert 1500 < tokens < beside / 1000  # it has 36 kB or more of KV a token


def test_a_server_with_unknown_flags_that_would_not_start_had_more_memory() -> None:
    cells = {"model": "Qwen/QwQ-32B", "params_b": "32.76", "gpu": "H100-PCIe"}
    unknown = settings_of(_run(**cells))
    known = settings_of(_run(**cells, max_model_len="8192", gpu_memory_fraction="0.9"))
    more, less = (server_of(s).kv_tokens(400, 1500)[0] for s in (unknown, known))
    assert server_of(known).deployment.starts
    assert more > 1.5 * less


def test_later_vllm_reads_the_kv_format_out_of_an_nvfp4_checkpoint() -> None:
    cells = {"gpu": "B200", "weight_dtype": "fp4", "kv_dtype": "auto (bf16)"}
    assert settings_of(_run(**cells, engine_version="0.17.0")).kv_dtype == "fp8"
    assert settings_of(_run(**cells, engine_version="0.11.0")).kv_dtype == "bf16"
    assert settings_of(_run(**cells | {"weight_dtype": "bf16"})).kv_dtype == "bf16"


def test_the_cpp_backend_of_tensorrt_llm_slides_no_window_by_itself() -> None:
    cells = {"model": "mistralai/Mistral-7B-v0.1", "params_b": "7.24"}
    whole = settings_of(_run(**cells, engine="TensorRT-LLM", engine_version="0.17"))
    sliding = settings_of(_run(**cells))
    windows = [
        mixer.window
        for settings in (whole, sliding)
        for mixer in settings.model.mixers.values()
        if isinstance(mixer, Attention)
    ]
    assert windows == [None, 4096]
