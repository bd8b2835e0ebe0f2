"""Plans on SGLang, TensorRT-LLM and vLLM V0: the engines' own flags reach their rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import run_command

PLAN = """
model: llama-3.1-8b
hardware: h100-sxm-80gb
engine: {engine}
traffic: {{rate: 4/s, prompt: 1024, output: 256, requests: 300}}
slos: {{ttft: 10 s}}
"""


def simulated(tmp_path: Path, engine: str) -> dict[str, Any]:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN.format(engine=engine), encoding="utf-8")
    _, text = run_command(f"simulate --plan {file} --json")
    document: dict[str, Any] = json.loads(text)
    return document


def mean_s(document: dict[str, Any], key: str) -> float:
    found: float = next(x["mean_s"] for x in document["result"]["latencies"] if x["key"] == key)
    return found


def test_batch_wait_delays_first_tokens(tmp_path: Path) -> None:
    """Waiting tokens never reach 0.9 x 8,192 at this rate, so it is twenty steps each."""
    plain = simulated(tmp_path, "{name: tensorrt-llm}")
    waits = simulated(
        tmp_path,
        "{name: tensorrt-llm, batch_wait_timeout_iters: 20, batch_wait_max_tokens_ratio: 0.9}",
    )
    steps = (mean_s(waits, "ttft") - mean_s(plain, "ttft")) / mean_s(waits, "tpot")
    assert 14 < steps < 22


def test_a_receive_interval_delays_by_half_of_it(tmp_path: Path) -> None:
    every, seldom = (
        simulated(tmp_path, f"{{name: sglang, scheduler_recv_interval: {interval}}}")
        for interval in (1, 30)
    )
    steps = (mean_s(seldom, "ttft") - mean_s(every, "ttft")) / mean_s(seldom, "tpot")
    assert 10 < steps < 18


def test_max_utilization_runs_more_than_no_evict(tmp_path: Path) -> None:
    most = [
        simulated(
            tmp_path,
            "{name: tensorrt-llm, max_num_tokens: 8192, max_seq_len: 4096, "
            f"free_gpu_memory_fraction: 0.05, capacity_scheduler_policy: {policy}}}",
        )["result"]["usage"]
        for policy in ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION")
    ]
    assert most[0]["num_preemptions"] == 0
    assert most[0]["max_running"] <= most[1]["max_running"]


@pytest.mark.parametrize(
    "engine",
    ["{name: sglang, page_size: 16}", "{name: tensorrt-llm}", "{name: vllm, version: '0.6'}"],
)
def test_it_is_said_that_rules_are_not_trace_checked(tmp_path: Path, engine: str) -> None:
    document = simulated(tmp_path, engine)
    assert document["result"]["num_answered"] == 300
    assert "not trace-checked" in next(
        a["value"] for a in document["assumptions"] if a["what"] == "scheduler"
    )


def test_hybrid_models_are_refused_with_a_way_out() -> None:
    with pytest.raises(AssertionError, match="one kind of KV") as caught:
        run_command("simulate --engine sglang --model qwen3.5-27b --hardware h200-sxm --tp 2")
    assert "--engine vllm" in str(caught.value)
