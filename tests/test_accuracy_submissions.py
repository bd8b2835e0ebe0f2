"""Measured rows whose settings or loads follow from the benchmark that they are of."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_accuracy import row

from capplan.accuracy.load import load_of
from capplan.accuracy.predict import predict
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
