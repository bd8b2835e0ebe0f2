"""Measured rows whose settings or loads follow from the benchmark that they are of."""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from test_accuracy import row

from capplan.accuracy.benchmarks.mlperf import LatencyLimits, highest_rate
from capplan.accuracy.emulate import of_replica, send_times
from capplan.accuracy.load import load_of
from capplan.accuracy.predict import predict
from capplan.accuracy.server import overheads_of
from capplan.accuracy.settings import settings_of


def test_the_highest_rate_within_limits(tmp_path: Path) -> None:
    """MLPerf: the published rate is the highest that passed, so it is sought here as well."""
    cells = {"workload": "poisson", "request_rate_qps": "9", "num_prompts": "",
             "dataset": "OpenOrca (MLPerf 24576-sample subset)", "range_ratio": "",
             "model": "meta-llama/Llama-2-70b-chat-hf", "weight_dtype": "fp8", "gpu": "H200-SXM",
             "isl": "222", "osl": "290", "engine": "TensorRT-LLM",
             "engine_version": "TensorRT 10.2.0"}  # fmt: skip
    server = row(tmp_path, **cells, notes="MLPerf v4.1 closed Server; submitter X")
    tight = row(tmp_path, **cells, notes="MLPerf v5.1 closed Interactive; submitter X")
    loose, narrow = predict(server).metrics, predict(tight).metrics
    assert loose["ttft_p99_ms"] <= 2000 * 1.2
    assert narrow["tpot_p99_ms"] == pytest.approx(40, rel=0.15)
    assert narrow["req_s"] < loose["req_s"]
    assert any("40 ms TPOT" in a.value for a in predict(tight).assumptions)


def test_limits_are_sought_where_few_requests_are_sent_as_well(tmp_path: Path) -> None:
    """600 s of one request in two seconds are too few for one draw; the limits hold all the same.

    Llama 3.1 405B: TTFT within 6 s at p99 (mlcommons/inference_policies, v5.0).
    """
    cells = {"workload": "poisson", "request_rate_qps": "9", "num_prompts": "",
             "dataset": "MLPerf long-context mix", "range_ratio": "", "num_gpus": "8", "tp": "8",
             "model": "meta-llama/Llama-3.1-405B-Instruct", "weight_dtype": "fp8",
             "gpu": "H200-SXM", "isl": "9428", "osl": "650", "engine": "TensorRT-LLM",
             "engine_version": "TensorRT 10.11"}  # fmt: skip
    found = predict(row(tmp_path, **cells, notes="MLPerf v5.1 closed Server; submitter X")).metrics
    assert found["ttft_p99_ms"] <= 6000 * 1.2
    assert found["req_s"] < 9


def test_submissions_are_tuned(tmp_path: Path) -> None:
    """AMD's harness for MLPerf v5.1 documents its llm_config; a plain row has the defaults."""
    cells = {"engine": "vLLM", "engine_version": "0.6.5", "gpu": "MI300X", "tp": "1",
             "model": "meta-llama/Llama-2-70b-chat-hf", "weight_dtype": "fp8"}  # fmt: skip
    tuned = settings_of(row(tmp_path, **cells, notes="MLPerf v5.1 closed Server; submitter X"))
    assert (tuned.num_scheduler_steps, tuned.max_num_seqs) == (9, 1024)
    plain = settings_of(row(tmp_path, **cells))
    assert (plain.num_scheduler_steps, plain.max_num_seqs) == (1, 256)
    noted = row(tmp_path, **cells, settings_notes="--num-scheduler-step 15 (tokens in groups)")
    assert settings_of(noted).num_scheduler_steps == 15


def test_a_submission_runs_as_its_round_configures_it(tmp_path: Path) -> None:
    """closed/NVIDIA/configs/B200-SXM-180GBx8/{Offline,Server}/llama3_1-405b.py of v5.1."""
    cells = {"model": "meta-llama/Llama-3.1-405B-Instruct", "weight_dtype": "fp4", "gpu": "B200",
             "num_gpus": "8", "tp": "", "pp": "", "engine": "TensorRT-LLM",
             "engine_version": "TensorRT 10.11"}  # fmt: skip
    offline = settings_of(row(tmp_path, **cells, notes="MLPerf v5.1 closed Offline; submitter X"))
    assert (offline.tp, offline.pp, offline.num_replicas) == (2, 2, 2)
    assert (offline.max_num_seqs, offline.max_num_batched_tokens) == (128, 1536)
    server = settings_of(row(tmp_path, **cells, notes="MLPerf v5.1 closed Server; submitter X"))
    assert (server.tp, server.pp, server.num_replicas) == (4, 1, 2)
    assert (server.max_num_batched_tokens, server.memory_share) == (2048, 0.95)
    assert not server.reserves_output
    assert any(a.what == "parallelism" for a in server.assumptions)
    few = row(tmp_path, **cells | {"num_gpus": "2"}, notes="MLPerf v5.1 closed Server; submitter X")
    assert settings_of(few).tp == 2  # four do not divide two GPUs
    plain = settings_of(row(tmp_path, **cells))
    assert plain.max_num_batched_tokens != 1536
    assert plain.pp == 1


@pytest.mark.parametrize(
    ("notes", "gpu", "batch", "tokens", "chunked"),
    [
        # configs/llama2-70b of v4.1, v5.0 and v5.1; chunked context came with v5.0.
        ("MLPerf v4.1 closed Server", "H100-SXM", 1024, 4096, False),
        ("MLPerf v4.1 closed Offline", "H200-SXM", 806, 4096, False),
        ("MLPerf v5.1 closed Offline", "H200-SXM", 2048, 1536, True),
        ("MLPerf v5.1 closed Interactive", "H200-SXM", 512, 256, True),
        ("MLPerf v5.1 closed Server", "H100-SXM", 1024, 1024, True),
    ],
)
def test_rounds_and_scenarios_differ(
    tmp_path: Path, notes: str, gpu: str, batch: int, tokens: int, chunked: bool
) -> None:
    found = settings_of(
        row(tmp_path, model="meta-llama/Llama-2-70b-chat-hf", weight_dtype="fp8", gpu=gpu,
            num_gpus="8", tp="", engine="TensorRT-LLM", engine_version="TensorRT 10",
            notes=f"{notes}; submitter X", workload="offline")
    )  # fmt: skip
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (batch, tokens)
    assert found.chunked_prefill is chunked


def test_submissions_of_deepseek_share_experts_among_attention_ranks(tmp_path: Path) -> None:
    """closed/NVIDIA/configs/B200-SXM-180GBx8/Server/deepseek-r1.py of v5.1: enable_attention_dp."""
    found = settings_of(
        row(tmp_path, model="deepseek-ai/DeepSeek-R1", weight_dtype="fp4", gpu="B200", tp="",
            num_gpus="8", engine="TensorRT-LLM", engine_version="TensorRT 10.11",
            notes="MLPerf v5.1 closed Server; submitter X")
    )  # fmt: skip
    assert (found.dp, found.tp, found.ep, found.max_num_seqs) == (8, 1, 8, 512)


def test_a_system_name_gives_the_memory(tmp_path: Path) -> None:
    cells = {"gpu": "GH200", "model": "meta-llama/Llama-2-70b-chat-hf", "weight_dtype": "fp8",
             "engine": "TensorRT-LLM"}  # fmt: skip
    large = row(tmp_path, **cells, notes="MLPerf v4.1 closed Server; system X_GH200-144GB_x1_TRT")
    assert settings_of(large).hardware_id == "gh200-144gb"
    assert settings_of(row(tmp_path, **cells)).hardware_id == "gh200-96gb"


def test_steps_of_one_run_of_the_scheduler_share_its_host_time(tmp_path: Path) -> None:
    """vLLM 0.6's multi-step scheduling; 0.4 had none, whatever the harness sets."""
    cells = {"engine": "vLLM", "engine_version": "0.6.5", "gpu": "MI300X", "tp": "1",
             "model": "meta-llama/Llama-2-70b-chat-hf", "weight_dtype": "fp8"}  # fmt: skip
    one = overheads_of(settings_of(row(tmp_path, **cells)))
    noted = row(tmp_path, **cells, settings_notes="--num-scheduler-steps 8")
    eight = overheads_of(settings_of(noted))
    assert eight.sequence_s == pytest.approx(one.sequence_s / 8)
    assert eight.step_s == pytest.approx(one.step_s / 8)
    early = row(tmp_path, **cells | {"engine_version": "0.4.3"}, notes="MLPerf v4.1 closed Offline")
    assert settings_of(early).num_scheduler_steps == 9
    assert overheads_of(settings_of(early)).sequence_s == pytest.approx(one.sequence_s)


def test_replicas_take_the_requests_of_one_stream_in_turn(tmp_path: Path) -> None:
    """The n-th arrivals of a Poisson stream: intervals vary by 1/sqrt(n) (Erlang)."""
    sent = row(tmp_path, workload="poisson", request_rate_qps="8", num_prompts="4000")
    whole = replace(load_of(sent), limits=LatencyLimits(2000, 200))
    spread = {}
    for replicas in (1, 16):
        times = send_times(of_replica(whole, replicas), 0)
        gaps = [later - sooner for sooner, later in pairwise(times)]
        mean = statistics.fmean(gaps)
        assert mean == pytest.approx(replicas / 8, rel=0.1)
        spread[replicas] = statistics.pstdev(gaps) / mean
    assert spread[1] == pytest.approx(1, rel=0.1)
    assert spread[16] == pytest.approx(1 / 4, rel=0.2)
    free = of_replica(load_of(sent), 16)  # nobody said how other benchmarks deal them out
    assert free.dealt == 1


def test_the_highest_rate_that_passes() -> None:
    assert highest_rate(10, lambda rate: rate <= 7) == pytest.approx(7, rel=0.02)
    assert highest_rate(10, lambda _: True) > 10
    assert highest_rate(10, lambda _: False) == pytest.approx(2)


def test_requests_of_several_runs_are_not_one_run(tmp_path: Path) -> None:
    """AccelMark's long prompts: at 0.5 requests/s a run of "200" ends after 100 arrivals."""
    cells = {"dataset": "sharegpt_longctx_v1", "workload": "poisson", "isl": "", "osl": ""}
    stated = row(tmp_path, **cells, request_rate_qps="0.5", num_prompts="200")
    assert load_of(stated).num_requests == 100
    offline = row(tmp_path, **cells | {"workload": "offline"}, num_prompts="50")
    assert load_of(offline).num_requests == 50


def test_servers_with_attention_ranks_balance_prompts(tmp_path: Path) -> None:
    """NVIDIA's recipes switch `enable_balance` on; trtllm-bench has the default, off."""
    cells = {"engine": "TensorRT-LLM", "engine_version": "1.2.0", "model": "openai/gpt-oss-120b",
             "weight_dtype": "fp4", "gpu": "B200", "num_gpus": "4", "tp": "", "ep": "4",
             "attention_dp": "on"}  # fmt: skip
    assert settings_of(row(tmp_path, **cells)).balances_prompts
    assert not settings_of(row(tmp_path, **cells | {"workload": "offline"})).balances_prompts
    assert not settings_of(row(tmp_path, **cells | {"attention_dp": "off"})).balances_prompts
