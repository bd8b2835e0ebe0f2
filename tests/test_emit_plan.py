"""`gpus --emit plan` writes the question as it was given, and reads it back to the same answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command

from capplan.specs.growth import parse_growth, parse_months

FAST = "gpus --hardware h100-sxm-80gb --tp 1 --slo-percentile 90"


def plan_of(line: str) -> tuple[str, dict[str, Any]]:
    code, text = run_command(f"{line} --emit plan")
    assert code == 0
    return text, yaml.safe_load(text)


def answer(line: str) -> dict[str, Any]:
    code, out = run_command(f"{line} --json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_lengths_arrivals_limits_and_growth_stand_as_given(tmp_path: Path) -> None:
    asked = (
        f"{FAST} --qps 1M/day --peak-factor 2 --prompt-tokens lognormal:900,0.7 --arrivals gamma:2 "
        "--slo-ttft p95:500ms --slo-goodput 95% --growth 10%/month --horizon 1y"
    )
    text, plan = plan_of(asked)
    assert text.startswith("# yaml-language-server: $schema=plan.schema.json\n")
    assert plan["traffic"] == {
        "rate": "1M/day",
        "peak_factor": 2.0,
        "arrivals": "gamma:2",
        "prompt": "lognormal:900,0.7",
        "output": 256,
    }
    assert plan["slos"] == {
        "percentile": 90,
        "ttft": {"limit": "500 ms", "percentile": 95},
        "tpot": "25 ms",
        "goodput": "95%",
    }
    assert plan["growth"] == {"rate": "10%/month", "horizon": "1y"}
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    first, again = answer(asked)["result"], answer(f"gpus --plan {file}")["result"]
    assert again["num_gpus"] == first["num_gpus"]
    assert again["sizing"]["months"] == first["sizing"]["months"]


def test_the_engine_that_was_asked_for_is_written() -> None:
    _, plan = plan_of(f"{FAST} --engine sglang --engine-version 0.5")
    assert plan["engine"]["name"] == "sglang"
    assert plan["engine"]["version"] == "0.5"


def test_a_trace_and_classes_are_written_with_their_files(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = (f"{i / 4},300,20" for i in range(1500))
    trace.write_text("\n".join(["timestamp,prompt_tokens,output_tokens", *rows]) + "\n")
    _, plan = plan_of(f"{FAST} --trace {trace}")
    assert plan["traffic"] == {"trace": {"file": str(trace)}}
    own = tmp_path / "own.yaml"
    own.write_text(
        "model: llama-3.1-8b\nhardware: h100-sxm-80gb\ntraffic:\n  trace: {file: trace.csv}\n"
        "slos: {percentile: 90, ttft: 1s}\n"
    )
    _, plan = plan_of(f"gpus --plan {own} --tp 1")
    assert plan["traffic"]["trace"]["file"] == str(trace)  # readable from anywhere
    assert plan["slos"] == {"percentile": 90, "ttft": "1 s"}
    _, plan = plan_of("gpus --plan docs/examples/shared-fleet.yaml --tp 1")
    assert [part["name"] for part in plan["traffic"]["classes"]] == ["chat", "summaries"]
    assert "slos" not in plan


def test_bounds_are_written_without_a_percentile() -> None:
    text, plan = plan_of("gpus --hardware h100-sxm-80gb --no-verify")
    assert "planned as means" in text
    assert plan["slos"] == {"ttft": "400 ms", "tpot": "25 ms"}


def test_growth_compounds() -> None:
    assert (1 + parse_growth("100%/year")) ** 12 == pytest.approx(2.0)
    assert parse_months("2 years") == 24


def test_a_plan_with_growth_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("model: llama-3.1-8b\nhardware: l4\ngrowth: {rate: 20}\n")
    code, _ = run_command(f"gpus --plan {file}", refused=True)
    assert code == 2


def test_nothing_may_be_cut_as_warm_up() -> None:
    for text in ("0", "0s"):
        _, out = run_command(f"simulate --num-requests 300 --warmup {text} --json")
        assert json.loads(out)["result"]["num_measured"] == 300
