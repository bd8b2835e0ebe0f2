"""Rows measured with AIConfigurator's generated servers and its client."""

from __future__ import annotations

from pathlib import Path

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun, run_of_cells
from capplan.accuracy.scheduler import make_loop
from capplan.accuracy.server import overheads_of, server_of
from capplan.accuracy.settings import settings_of
from capplan.simulator.policies.loop import PolicyReplica

_NOTE = "NVIDIA aiconfigurator gap-analysis measurement; file labels concurrency"


def _run(**cells: str) -> MeasuredRun:
    plain = {
        "id": "x", "model": "openai/gpt-oss-120b", "params_b": "116.8", "weight_dtype": "fp8",
        "gpu": "H100-SXM", "num_gpus": "4", "tp": "4", "pp": "1", "engine": "TensorRT-LLM",
        "engine_version": "1.3.0rc1", "source_date": "2026-03-18", "workload": "closed",
        "concurrency": "40", "isl": "1000", "osl": "50", "dataset": "synthetic", "notes": _NOTE,
    }  # fmt: skip
    return run_of_cells(Path(), 0, plain | cells)


def test_all_requests_have_the_lengths_that_the_client_asks_for() -> None:
    """bench_run.sh: deviations of 0, 50 requests a client; the runner before it: 10."""
    assert set(load_of(_run()).lengths()) == {(1000, 50)}
    assert load_of(_run()).num_requests == 50 * 40
    assert load_of(_run(source_date="2026-01-23")).num_requests == 10 * 40
    elsewhere = load_of(_run(notes=""))
    assert len({output for _, output in elsewhere.lengths()}) > 1


def test_a_step_of_tensorrt_llm_has_room_for_a_prompt_and_1500_tokens() -> None:
    """trtllm.rule: max_num_tokens = max_batch_size + isl + 1500; the template's memory: 0.8."""
    settings = settings_of(_run())
    assert settings.max_num_batched_tokens == 40 + 1000 + 1500
    assert settings.memory_share == 0.8
    assert settings_of(_run(notes="")).max_num_batched_tokens != 2540
    assert settings_of(_run(max_num_batched_tokens="4096")).max_num_batched_tokens == 4096


def test_sglang_mixes_decodes_into_steps_of_prompts() -> None:
    def mixes(notes: str) -> bool:
        settings = settings_of(_run(engine="SGLang", engine_version="0.5.6.post2", notes=notes))
        loop = make_loop(settings, server_of(settings).steps, 1e5, [(100, 10)], lambda _: None)
        assert isinstance(loop, PolicyReplica)
        return loop.policy.mixes

    assert mixes(_NOTE)
    assert not mixes("")


def test_sizes_lost_by_two_releases_leave_decodes_without_a_graph() -> None:
    """0.7.0 (2026-03-11) and 0.8.0 wrote the template's sizes, unpadded, whatever was asked for."""
    engine = overheads_of(settings_of(_run()))
    assert engine.has_graph(32)
    assert not engine.has_graph(40)
    assert not engine.has_graph(257)
    for cells in ({"source_date": "2026-03-07"}, {"source_date": "2026-05-19"}, {"notes": ""}):
        assert overheads_of(settings_of(_run(**cells))).has_graph(40)


def _step_s(run: MeasuredRun, requests: int) -> float:
    model = server_of(settings_of(run)).model
    return model.decode(requests, model.uniform_reads(requests, 4500)).total_s


def test_launching_each_layer_sets_the_pace_whatever_the_batch() -> None:
    """36 layers took 47 to 49 ms with 40 to 96 requests (gap-analysis rows of gpt-oss, TP4)."""
    eager = [_step_s(_run(), requests) for requests in (40, 48, 80)]
    assert max(eager) < 1.1 * min(eager)
    per_layer_s = overheads_of(settings_of(_run())).eager_s_per_layer
    assert per_layer_s is not None
    assert min(eager) >= per_layer_s * settings_of(_run()).model.num_layers
    before = _run(source_date="2026-03-07")
    assert min(eager) > 2 * _step_s(before, 40)
    assert _step_s(_run(), 32) == _step_s(before, 32)


def test_decodes_without_a_graph_make_answers_slower() -> None:
    def tpot_ms(source_date: str) -> float:
        run = _run(source_date=source_date, concurrency="20")
        settings = settings_of(run)
        return emulate(settings, load_of(run), server_of(settings)).metrics["tpot_mean_ms"]

    assert tpot_ms("2026-03-18") > 2 * tpot_ms("2026-03-07")


def test_vllm_keeps_its_own_defaults() -> None:
    """Prompts that are sent once cannot be answered faster than they are computed; some were."""
    settings = settings_of(_run(engine="vLLM", engine_version="0.12.0"))
    assert settings.cuda_graph_sizes == ()
    assert len({output for _, output in load_of(_run(engine="vLLM")).lengths()}) > 1


def test_aiperf_measures_the_first_burst_genai_perf_does_not() -> None:
    assert load_of(_run(dataset="AIPerf", notes="")).steady_from == 0
    assert load_of(_run(dataset="GenAI-Perf", notes="")).steady_from == 40
