"""The one process of a server that takes requests in, and what a chat's template costs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_accuracy import row

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.simulator.intake import Intake

BURST = {"workload": "burst", "num_prompts": "400", "isl": "128", "osl": "4", "range_ratio": ""}
LAB = {
    "source": "github.com/gpustack/gpustack docs/performance-lab/x",
    "notes": "vllm bench serve; server: vllm serve x",
}


def test_all_of_a_burst_are_through_when_the_last_is() -> None:
    assert Intake(0.5).passed_on([0.0, 0.0, 0.0]) == [1.5, 1.5, 1.5]


def test_who_comes_during_a_round_is_of_the_next() -> None:
    assert Intake(1.0).passed_on([0.0, 0.2, 0.9, 5.0]) == [1.0, 3.0, 3.0, 6.0]


def test_rounds_go_on_between_calls() -> None:
    intake = Intake(1.0)
    assert intake.passed_on([0.0, 0.0]) == [2.0, 2.0]
    assert intake.passed_on([1.0]) == [3.0]
    assert intake.passed_on([]) == []


@given(
    st.lists(st.floats(0, 100), max_size=40).map(sorted),
    st.floats(0.001, 10),
)
def test_each_is_worked_on_once_and_in_order(arrivals: list[float], request_s: float) -> None:
    through = Intake(request_s).passed_on(arrivals)
    assert through == sorted(through)
    for arrived, passed in zip(arrivals, through, strict=True):
        assert passed >= arrived + request_s * (1 - 1e-9)
    # Work that is there is worked on: the loop never rests while somebody waits.
    least = 0.0
    for arrived in arrivals:
        least = max(least, arrived) + request_s
    assert not arrivals or through[-1] == pytest.approx(least)


def ttft_of_burst_s(tmp_path: Path, **cells: str) -> float:
    """Median TTFT of a burst of 400."""
    run = row(tmp_path, **{**BURST, **cells})
    settings, load = settings_of(run), load_of(run)
    server = server_of(settings)
    return emulate(settings, load, server).metrics["ttft_p50_ms"] * 1e-3


def test_vllm_0_11_0_parses_the_template_of_every_chat(tmp_path: Path) -> None:
    """Its fix is in 0.11.1; gpt-oss is rendered without a template."""
    plain = ttft_of_burst_s(tmp_path, engine_version="0.11.0")
    chats = ttft_of_burst_s(tmp_path, engine_version="0.11.0", **LAB)
    fixed = ttft_of_burst_s(tmp_path, engine_version="0.11.1", **LAB)
    # vllm#20065 measured 6 to 8 s for a thousand of a like parse on one of its hosts.
    assert 0.006 * 400 < chats - plain < 0.030 * 400
    assert fixed == plain
    oss = {"model": "openai/gpt-oss-20b", "engine_version": "0.11.0", "gpu": "H200-SXM"}
    assert ttft_of_burst_s(tmp_path, **oss, **LAB) == ttft_of_burst_s(tmp_path, **oss)


def test_chats_are_stated_or_assumed(tmp_path: Path) -> None:
    stated = settings_of(row(tmp_path, notes="--backend openai-chat"))
    assert stated.chat_template
    assert "endpoint" not in [a.what for a in stated.assumptions]
    assumed = settings_of(row(tmp_path, **LAB))
    assert assumed.chat_template
    assert "endpoint" in [a.what for a in assumed.assumptions]
    assert not settings_of(row(tmp_path)).chat_template
    assert not settings_of(
        row(tmp_path, engine="SGLang", engine_version="0.5", **LAB)
    ).chat_template


@pytest.mark.parametrize("workload", ["offline", "static"])
def test_what_calls_the_engine_waits_for_no_server(tmp_path: Path, workload: str) -> None:
    cells = {**BURST, "workload": workload, "concurrency": "32"}
    assert not load_of(row(tmp_path, **cells)).by_http
    assert load_of(row(tmp_path, **BURST)).by_http
    mlperf = {"workload": "poisson", "dataset": "MLPerf OpenOrca", "request_rate_qps": "5"}
    assert not load_of(row(tmp_path, **mlperf)).by_http
