"""Result files of benchmark tools: units, traps, and what is set aside.

The files are written here, in the shape of the tools' own; the figures are round, so that a
wrong unit or a wrong key is seen at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.accuracy.bench_files.read import read_results
from capplan.accuracy.bench_files.row import ResultRow, SkippedResult
from capplan.errors import CapplanError

VLLM: dict[str, Any] = {
    "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 200,
    "request_rate": 4.0, "burstiness": 1.0, "max_concurrency": None, "duration": 60.0,
    "completed": 200, "total_input_tokens": 40_000, "total_output_tokens": 20_000,
    "request_throughput": 3.3, "request_goodput:": 3.3, "output_throughput": 333.0,
    "total_token_throughput": 1000.0, "mean_ttft_ms": 30.0, "median_ttft_ms": 29.0,
    "p99_ttft_ms": 44.0, "mean_tpot_ms": 10.0, "median_tpot_ms": 9.9, "p99_tpot_ms": 12.0,
    "mean_itl_ms": 10.1, "gpu_name": "NVIDIA-H100-PCIe", "gpu_count": "1",
}  # fmt: skip


def _one(folder: Path, document: Any, name: str = "result.json") -> ResultRow:
    (row,) = _all(folder, document, name)
    assert isinstance(row, ResultRow), row
    return row


def _all(folder: Path, document: Any, name: str = "result.json") -> list[Any]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text, encoding="utf-8")
    return list(read_results(path))


def test_bench_serve(tmp_path: Path) -> None:
    row = _one(tmp_path, VLLM)
    assert row.tool == "vllm bench serve"
    expected = {
        "engine": "vLLM", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA-H100-PCIe",
        "num_gpus": 1, "workload": "poisson", "request_rate_qps": 4.0, "num_prompts": 200,
        "isl": 200.0, "osl": 100.0, "ttft_mean_ms": 30.0, "ttft_p50_ms": 29.0, "ttft_p99_ms": 44.0,
        "tpot_mean_ms": 10.0, "tpot_p50_ms": 9.9, "tpot_p99_ms": 12.0, "itl_mean_ms": 10.1,
        "output_tok_s": 333.0, "req_s": 3.3,
    }  # fmt: skip
    assert dict(row.cells) == expected


def test_seconds_without_an_ending(tmp_path: Path) -> None:
    """A fork writes the same keys without `_ms`, in seconds."""
    document = {
        "model_id": "zai-org/GLM-5-FP8", "num_prompts": 40, "request_rate": "inf",
        "max_concurrency": 4, "duration": 71.0, "completed": 40, "total_input_tokens": 409_600,
        "total_output_tokens": 5_120, "request_throughput": 0.56, "output_throughput": 71.7,
        "median_ttft": 1.25, "p99_ttft": 4.5, "median_e2el": 7.1, "median_tpot": 0.045,
    }  # fmt: skip
    row = _one(tmp_path, document, "glm5_fp8_tp8_isl10240_osl128_conc4.json")
    assert row.cells["ttft_p50_ms"] == 1250.0
    assert row.cells["tpot_p50_ms"] == 45.0
    assert (row.cells["workload"], row.cells["concurrency"]) == ("closed", 4)
    assert row.cells["tp"] == 8


def test_all_at_once_has_no_ttft(tmp_path: Path) -> None:
    row = _one(tmp_path, VLLM | {"request_rate": "inf"})
    assert row.cells["workload"] == "burst"
    assert "ttft_mean_ms" not in row.cells
    assert row.cells["tpot_mean_ms"] == 10.0
    assert any("queue" in note for note in row.notes)


def test_overload_keeps_rates_only(tmp_path: Path) -> None:
    row = _one(tmp_path, VLLM | {"mean_ttft_ms": 20_000.0})
    assert "ttft_mean_ms" not in row.cells
    assert row.cells["output_tok_s"] == 333.0


def test_failed_runs_are_no_zeros(tmp_path: Path) -> None:
    failed = {name: 0.0 if isinstance(value, float) else value for name, value in VLLM.items()}
    (skipped,) = _all(tmp_path, failed | {"completed": 0, "failed": 8})
    assert isinstance(skipped, SkippedResult)
    assert skipped.reason == "all 8 requests failed"
    (some,) = _all(tmp_path, VLLM | {"failed": 50})
    assert some.reason == "50 of 250 requests failed"


def test_two_objects_in_a_file(tmp_path: Path) -> None:
    rows = _all(tmp_path, json.dumps(VLLM) + "\n" + json.dumps(VLLM | {"request_rate": 8.0}))
    assert [row.place for row in rows] == ["line 1", "line 2"]
    assert [row.cells["request_rate_qps"] for row in rows] == [4.0, 8.0]


def test_sglang_lines(tmp_path: Path) -> None:
    document = VLLM | {
        "backend": "sglang", "total_output_tokens_retokenized": 19_990, "max_concurrency": 256,
        "mean_e2e_latency_ms": 1020.0,
    }  # fmt: skip
    (row,) = _all(tmp_path, json.dumps(document) + "\n", "runs.jsonl")
    assert (row.tool, row.cells["engine"]) == ("SGLang bench_serving", "SGLang")
    assert row.cells["e2e_mean_ms"] == 1020.0
    # 256 in flight can never bind with 200 prompts.
    assert "concurrency" not in row.cells


def test_wrong_units_are_seen(tmp_path: Path) -> None:
    """Milliseconds written where seconds belong: TTFT + TPOT x tokens is not E2E."""
    row = _one(tmp_path, VLLM | {"mean_e2el_ms": 1.02})
    assert "tpot_mean_ms" not in row.cells
    assert any("units" in note for note in row.notes)


def test_chunks_are_not_tokens(tmp_path: Path) -> None:
    """A client that counts two chunks a token halves its TPOT; E2E and TTFT know better."""
    row = _one(tmp_path, VLLM | {"mean_e2el_ms": 2010.0})
    assert row.cells["tpot_mean_ms"] == pytest.approx((2010.0 - 30.0) / 99)
    assert "tpot_p99_ms" not in row.cells
    assert any("chunks" in note for note in row.notes)


def test_sweep_folder(tmp_path: Path) -> None:
    name = "SERVE--max_num_seqs=4-tensor_parallel_size=2-BENCH--max_concurrency=2/run=0.json"
    row = _one(tmp_path, VLLM, name)
    assert (row.cells["max_num_seqs"], row.cells["tp"]) == (4, 2)


def test_offline_runs(tmp_path: Path) -> None:
    throughput = {
        "elapsed_time": 84.0, "num_requests": 16, "total_num_tokens": 65_536,
        "requests_per_second": 0.19, "tokens_per_second": 780.0,
    }  # fmt: skip
    row = _one(tmp_path, throughput, "throughput_ip2048_op2048_np16.json")
    assert dict(row.cells) == {
        "engine": "vLLM", "workload": "offline", "num_prompts": 16, "req_s": 0.19,
        "total_tok_s": 780.0, "isl": 2048, "osl": 2048,
    }  # fmt: skip
    latency = {"avg_latency": 2.5, "latencies": [2.4, 2.6], "percentiles": {"50": 2.5}}
    row = _one(tmp_path, latency, "latency_ip128_op64_np8.json")
    assert (row.cells["e2e_mean_ms"], row.cells["concurrency"]) == (2500.0, 8)


def _guidellm(strategy: dict[str, Any]) -> dict[str, Any]:
    def of(mean: float, **more: Any) -> dict[str, Any]:
        return {"successful": {"mean": mean, "median": mean, **more}}

    metrics = {
        "request_totals": {"successful": 100, "errored": 0},
        "request_latency": of(2.0),
        "time_to_first_token_ms": of(50.0, percentiles={"p99": 90.0}),
        "inter_token_latency_ms": of(15.3, percentiles={"p99": 20.0}),
        "time_per_output_token_ms": of(15.6),
        "prompt_token_count": of(512.0),
        "output_token_count": of(128.0),
        "output_tokens_per_second": of(600.0),
        "requests_per_second": of(4.7),
    }
    config = {"strategy": strategy, "backend": {"model": "Qwen/Qwen3-8B"}}
    return {
        "metadata": {"version": 2},
        "benchmarks": [{"config": config, "metrics": metrics, "duration": 30.0}],
    }


@pytest.mark.parametrize(
    ("strategy", "cells"),
    [
        ({"type_": "constant", "rate": 5.0}, ("constant-rate", 5.0, None)),
        ({"type_": "poisson", "rate": 5.0}, ("poisson", 5.0, None)),
        ({"type_": "concurrent", "streams": 16}, ("closed", None, 16)),
        ({"type_": "synchronous"}, ("closed", None, 1)),
        ({"type_": "throughput"}, ("burst", None, None)),
    ],
)
def test_guidellm(
    tmp_path: Path, strategy: dict[str, Any], cells: tuple[str, float | None, int | None]
) -> None:
    row = _one(tmp_path, _guidellm(strategy))
    found = tuple(row.cells.get(name) for name in ("workload", "request_rate_qps", "concurrency"))
    assert found == cells
    # Latency in seconds beside times in milliseconds; and its ITL is our TPOT.
    assert row.cells["tpot_mean_ms"] == 15.3
    assert row.cells["isl"] == 512.0
    if cells[0] != "burst":
        assert (row.cells["e2e_mean_ms"], row.cells["ttft_p99_ms"]) == (2000.0, 90.0)


def test_aiperf_units(tmp_path: Path) -> None:
    document = {
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "request_latency": {"unit": "ms", "avg": 1950.0},
        "time_to_first_token": {"unit": "us", "avg": 45_000.0, "p50": 44_000.0, "p99": 60_000.0},
        "inter_token_latency": {"unit": "ms", "avg": 15.0, "p50": 15.0, "p99": 18.0},
        "request_count": {"unit": "requests", "avg": 64.0},
        "input_sequence_length": {"unit": "tokens", "avg": 512.0},
        "output_sequence_length": {"unit": "tokens", "avg": 128.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 250.0},
        "benchmark_duration": {"unit": "sec", "avg": 32.0},
        "input_config": {
            "endpoint": {"model_names": ["Qwen/Qwen3-0.6B"]},
            "loadgen": {"concurrency": 4, "warmup_request_count": 1},
        },
    }
    row = _one(tmp_path, document)
    assert row.cells["ttft_mean_ms"] == pytest.approx(45.0)
    assert (row.cells["workload"], row.cells["concurrency"]) == ("closed", 4)
    assert row.cells["model"] == "Qwen/Qwen3-0.6B"


def test_inference_perf(tmp_path: Path) -> None:
    document = {
        "load_summary": {"count": 600, "send_duration": 60.0, "requested_rate": 10.0},
        "successes": {
            "count": 600,
            "latency": {
                "request_latency": {"mean": 0.68},
                "time_to_first_token": {"mean": 0.035, "median": 0.033, "p99": 0.057},
                "time_per_output_token": {"mean": 0.01024, "median": 0.01, "p99": 0.012},
            },
            "throughput": {"output_tokens_per_sec": 640.0, "requests_per_sec": 10.0},
            "prompt_len": {"mean": 204.0},
            "output_len": {"mean": 64.0},
        },
        "failures": {"count": 0},
    }
    row = _one(tmp_path, document)
    assert (row.cells["ttft_mean_ms"], row.cells["tpot_p99_ms"]) == (35.0, 12.0)
    server = {"load_summary": {}, "successes": {"prompt_len": {"mean": 4995, "rate": 2111.0}}}
    (skipped,) = _all(tmp_path, server)
    assert "totals" in skipped.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ('{"a": 1', "not JSON: the file ends in the middle"),
        ('{"a": }', "not JSON"),
        ('{"a": 1}', "no result of a known benchmark tool: keys `a`"),
        ("[3]", "a bare value"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_result(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CapplanError, match=message.split(":", maxsplit=1)[0]):
        _all(tmp_path, text)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mangled_results_never_crash(data: st.DataObject) -> None:
    """Any value in the place of any key: read, skipped or refused in words."""
    base = data.draw(st.sampled_from([VLLM, _guidellm({"type_": "constant", "rate": 5.0})]))
    mangled = dict(base)
    for key in data.draw(st.lists(st.sampled_from(sorted(base)), max_size=4)):
        mangled[key] = data.draw(json_values)
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        try:
            for row in _all(Path(folder), json.dumps(mangled)):
                if isinstance(row, ResultRow):
                    numbers = [v for v in row.cells.values() if not isinstance(v, str)]
                    assert all(0 < value < float("inf") for value in numbers)
        except CapplanError:
            pass


SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "bench_outputs"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the collection of real results is not here")
def test_real_results() -> None:
    """Every result file of a tool that we read gives its runs; none raises anything else."""
    rows: list[ResultRow] = []
    refused: list[str] = []
    for path in sorted(SHARED.rglob("*.json*")):
        try:
            rows += [row for row in read_results(path) if isinstance(row, ResultRow)]
        except CapplanError as error:
            refused.append(error.message)
    assert all("known benchmark tool" in message for message in refused)
    tools = {row.tool for row in rows}
    assert len(rows) >= 100
    assert {"vllm bench serve", "guidellm", "aiperf", "inference-perf"} <= tools
