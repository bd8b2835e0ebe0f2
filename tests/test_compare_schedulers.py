"""Schedulers side by side: the effects in one answer, and questions that cannot be put."""

from __future__ import annotations

from dataclasses import replace

import pytest
from commands import run_command
from test_policies import DYADIC

from capplan.errors import CapplanError
from capplan.planner.compare_schedulers import KEYS, SchedulersQuestion, compare_schedulers
from capplan.simulator.config import KvGroup, SchedulerConfig
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.requests import Request

CROWD = [Request(str(i), 0.0, 15, 400) for i in range(32)]
LONG = Request("long", 0.5, 4096, 30)
CONFIG = SchedulerConfig(
    num_gpu_blocks=5001, max_num_seqs=64, max_num_batched_tokens=512, max_model_len=8192,
    enable_prefix_caching=False, async_scheduling=False,
)  # fmt: skip
QUESTION = SchedulersQuestion(lambda: [*CROWD, LONG], CONFIG, DYADIC)


def test_the_effects_in_one_answer() -> None:
    result = compare_schedulers(QUESTION)
    rows = {row.key: row for row in result.rows}
    assert tuple(rows) == KEYS
    assert (result.num_requests, result.longest_prompt_tokens) == (33, 4096)
    assert all(row.num_answered == 33 and row.end == "finished" for row in result.rows)
    prefill_s = DYADIC.mixed(0, 0, [(4096, 0)])
    for key in ("orca", "prefill-first", "sglang"):
        assert rows[key].longest_gap_s > prefill_s  # type: ignore[operator]
    for key in ("chunked", "tensorrt-llm", "tensorrt-llm-max-utilization", "vllm"):
        assert rows[key].longest_gap_s < prefill_s / 3  # type: ignore[operator]
        assert rows[key].longest_prompt_ttft_s > rows["orca"].longest_prompt_ttft_s  # type: ignore[operator]
    # The exact core and the policy of the same rule are one.
    same = {name: getattr(rows["vllm"], name) for name in ("end_s", "itl_p99_s", "ttft_p50_s")}
    assert same == {name: getattr(rows["chunked"], name) for name in same}
    assert rows["vllm"].trace_checked
    assert not any(row.trace_checked for key, row in rows.items() if key != "vllm")


def test_percentiles_need_ten_beyond() -> None:
    row = compare_schedulers(replace(QUESTION, keys=("chunked",))).rows[0]
    assert row.ttft_p99_s is None
    assert row.ttft_p50_s is not None
    assert row.itl_p99_s is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": ("orka",)}, "`orka` is not a scheduler"),
        ({"fleet": FleetSettings(num_replicas=2)}, "on one replica"),
        ({"config": replace(CONFIG, kv_groups=(KvGroup("sliding", 16, 128),))}, "one kind of KV"),
    ],
)
def test_questions_that_cannot_be_put(change: dict[str, object], message: str) -> None:
    with pytest.raises(CapplanError, match=message):
        replace(QUESTION, **change)  # type: ignore[arg-type]


def test_ctrl_c_shows_what_is_known() -> None:
    calls = 0

    def traffic() -> list[Request]:
        nonlocal calls
        calls += 1
        return [*CROWD, LONG]

    class Interrupted:
        windows = ()
        line = staticmethod(DYADIC.line)

        @staticmethod
        def mixed(*arguments: object) -> float:
            if calls > 2:
                raise KeyboardInterrupt
            return DYADIC.mixed(*arguments)  # type: ignore[arg-type]

    result = compare_schedulers(replace(QUESTION, traffic=traffic, step_time=Interrupted()))
    assert result.interrupted
    assert [row.key for row in result.rows] == ["static", "decode-first"]


def test_the_exercise_goes_with_nothing_else() -> None:
    with pytest.raises(AssertionError, match="--exercise goes with no other option"):
        run_command("simulate --exercise --qps 3")
