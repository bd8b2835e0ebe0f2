"""Bands after a calibration: the user's own runs narrow or widen them, and only where they may."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.formulas.statistics import covering_range
from capplan.performance.calibration import Calibration, calibration_for, calibration_of
from capplan.performance.own_errors import TABLE_RUNS, OwnErrors, OwnRuns
from capplan.planner.simulated_bands import key_of
from capplan.results.bands import ErrorBand
from capplan.specs.calibration import CalibrationSpec, load_calibration, yaml_text

SHIPPED = ErrorBand("tpot", 0.8, 1.3, 0.8, 40, "Hopper", True)


def own(low: float, high: float, num: int = 12, **more: Any) -> OwnRuns:
    return OwnRuns((OwnErrors("tpot", False, num, low, high),), (1,), **more)


def test_own_runs_narrow_the_band_by_their_number() -> None:
    found = own(0.95, 1.05).band(SHIPPED, loaded=False)
    # 12 runs of 12 + 4: three quarters of the way, in logarithms.
    assert found.low_ratio == pytest.approx(0.95**0.75 * 0.8**0.25)
    assert found.high_ratio == pytest.approx(1.05**0.75 * 1.3**0.25)
    assert found.words == "12 of your runs (75%) and 40 measured rows of Hopper (25%)"
    assert own(0.95, 1.05, 1).band(SHIPPED, loaded=False).words.startswith("1 of your runs (20%)")


def test_own_runs_widen_it_too() -> None:
    found = own(0.5, 2.0).band(SHIPPED, loaded=False)
    assert found.low_ratio < 0.8
    assert found.high_ratio > 1.3


def test_runs_of_other_servers_narrow_nothing() -> None:
    for runs in (own(0.95, 1.05, unlike=("sglang",)), own(0.95, 1.05).at_tp(2)):
        found = runs.band(SHIPPED, loaded=False)
        assert (found.low_ratio, found.high_ratio) == (0.8, 1.3)
        assert "do not narrow it" in found.words
    wide = own(0.5, 2.0).at_tp(2).band(SHIPPED, loaded=False)
    assert wide.low_ratio < 0.8
    assert "TP 1" in wide.words


def test_errors_at_a_light_load_say_nothing_of_a_full_server() -> None:
    assert own(0.95, 1.05).band(SHIPPED, loaded=True) == SHIPPED
    assert own(0.95, 1.05).band(replace(SHIPPED, figure="ttft"), loaded=False).num_own_runs == 0


@given(
    st.lists(st.floats(0.05, 20), min_size=1, max_size=40),
    st.floats(0.05, 1.0),
    st.floats(1.0, 20.0),
)
def test_a_band_lies_between_its_sources(errors: list[float], low: float, high: float) -> None:
    ends = covering_range(errors, 0.8)
    runs = own(min(1.0, ends[0]), max(1.0, ends[1]), len(errors))
    found = runs.band(replace(SHIPPED, low_ratio=low, high_ratio=high), loaded=False)
    tiny = 1e-9
    assert min(low, ends[0]) - tiny <= found.low_ratio <= 1 + tiny
    assert 1 - tiny <= found.high_ratio <= max(high, ends[1]) + tiny


@pytest.mark.parametrize("num", [9, 12, 19, 30])
def test_the_next_run_lies_inside_as_often_as_meant(num: int) -> None:
    """Split conformal: whatever the distribution, here a skewed one with outliers."""
    rng = random.Random(num)

    def error() -> float:
        return rng.lognormvariate(0.0, 0.1) * (3.0 if rng.random() < 0.05 else 1.0)

    trials = 4000
    inside = 0
    for _ in range(trials):
        low, high = covering_range([error() for _ in range(num)], 0.8)
        inside += low <= error() <= high
    assert inside / trials >= 0.8 - 3 * (0.16 / trials) ** 0.5
    if num % 10 == 9:  # the ranks are whole: exactly 80 %
        assert inside / trials == pytest.approx(0.8, abs=3 * (0.16 / trials) ** 0.5)


def spec(**changes: Any) -> CalibrationSpec:
    one = {"value": 0.9, "low": 0.85, "high": 0.95, "identified": True}
    none = {"value": 0.0, "low": -100.0, "high": 100.0, "identified": False}
    data = {
        "schema": "capplan.calibration/1", "hardware": "h100-sxm-80gb", "engine": "vllm",
        "models": ["llama-3.1-8b"], "tp": [1], "runs": 12, "compute": one, "bandwidth": one,
        "collective_latency": {"value": 1.0, "low": 0.5, "high": 2.0, "identified": False},
        "step_us": {"value": 500.0, "low": 300.0, "high": 700.0, "identified": True},
        "sequence_us": none, "errors": {"before": 0.2, "after": 0.03, "left_out": 0.04},
        "bands": [
            {"figure": figure, "loaded": loaded, "runs": 12, "low": 0.97, "high": 1.03}
            for figure in ("tpot", "ttft", "ttft_p99", "throughput") for loaded in (False, True)
        ],
    }  # fmt: skip
    return CalibrationSpec.model_validate(data | changes)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml_text(spec()), encoding="utf-8")
    assert load_calibration(path) == spec()
    return str(path)


def test_a_file_without_bands_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    lines = yaml_text(spec()).splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("bands")))
    assert calibration_of(load_calibration(path)).own is None
    _, text = run_command(f"roofline --hardware h100 --calibration {path}", width=100)
    assert "the file states no errors by figure" in text


def test_another_model_and_another_engine_are_told() -> None:
    same, notes = calibration_for(spec(), "llama-3.1-8b", "vllm")
    assert not notes
    assert (same.step_s, same.own and same.own.unlike) == (5e-4, ())
    other, notes = calibration_for(spec(), "qwen3-8b", "sglang")
    assert len(notes) == 2
    assert (other.compute, other.step_s) == (0.9, 0.0)
    assert other.own is not None
    assert other.own.unlike == ("llama-3.1-8b", "vllm")


GPUS = "gpus --hardware h100-sxm-80gb --qps 40 --tp 1"


def answer(line: str) -> dict[str, Any]:
    _, text = run_command(f"{line} --json")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("mode", ["", " --no-verify"])
def test_gpus_take_it(file: str, mode: str) -> None:
    """A slower server needs as many or more; the file is named; the bands are narrower."""
    plain = answer(GPUS + mode)
    slower = answer(f"{GPUS}{mode} --calibration {file}")
    assert slower["inputs"]["calibration"] == file
    said = [a["value"] for a in slower["assumptions"] if a["option"] == "--calibration"]
    assert any(text.startswith(f"{file}: 12 runs of h100-sxm-80gb under vllm") for text in said)
    before, after = plain["result"], slower["result"]
    assert after["replica"]["requests_per_s"] < before["replica"]["requests_per_s"]
    assert after["num_gpus"] >= before["num_gpus"]
    if not mode:
        assert after["sustained"]["requests_per_s"] < before["sustained"]["requests_per_s"]
    for old, new in zip(before["bands"], after["bands"], strict=True):
        assert (old["own_runs"], new["own_runs"]) == (0, 12)
        assert "12 of your runs" in new["words"]
        assert (new["high"] / new["value"]) <= (old["high"] / old["value"])


def test_points_of_one_calibration_are_not_taken_for_another(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache's names hold the calibration's content: the same with a cache and without."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    line = f"{GPUS} --calibration {file}"
    without = answer(f"{line} --no-cache")["result"]
    answer(GPUS)  # fills it with points of the uncalibrated server
    assert answer(line)["result"] == without
    assert answer(line)["result"] == without
    Path(file).write_text(yaml_text(spec(step_us={
        "value": 4000.0, "low": 3000.0, "high": 5000.0, "identified": True})))  # fmt: skip
    assert answer(line)["result"]["sustained"] != without["sustained"]


def test_several_accelerators(file: str) -> None:
    found = answer(f"gpus --no-verify --hardware h100,a100-sxm-80gb --calibration {file}")
    plain = answer("gpus --no-verify --hardware h100,a100-sxm-80gb")
    said = {a["what"]: a["value"] for a in found["assumptions"]}
    assert said["not calibrated"] == "a100-sxm-80gb"
    by_name = [
        {plan["hardware"]: plan["replica"] for plan in one["result"]["candidates"]}
        for one in (found, plain)
    ]
    assert by_name[0]["a100-sxm-80gb"] == by_name[1]["a100-sxm-80gb"]
    assert by_name[0]["h100-sxm-80gb"] != by_name[1]["h100-sxm-80gb"]


def test_roofline_and_its_explanation_take_it(file: str) -> None:
    line = "roofline --hardware h100 --batch 32 --context 2048"
    plain, slower = answer(line)["result"], answer(f"{line} --calibration {file}")["result"]
    for before, after in zip(plain["points"], slower["points"], strict=True):
        assert after["derated_time_s"] > 1.05 * before["derated_time_s"]
        assert after["time_s"] == before["time_s"]
    ratio = slower["derated_bandwidth_bytes_per_s"] / plain["derated_bandwidth_bytes_per_s"]
    assert ratio == pytest.approx(0.9)
    assert "explanation" in answer(f"explain {line} --calibration {file}")["schema"]
    beside = answer(f"{line.replace('h100', 'h100,l4')} --calibration {file}")
    assert beside["result"]["points"] == slower["points"]


@pytest.mark.parametrize("command", ["gpus --no-verify", "roofline", "simulate"])
def test_of_another_accelerator_it_is_refused(file: str, command: str) -> None:
    code, _ = run_command(f"{command} --hardware a100 --calibration {file}", refused=True)
    assert code == 2


def test_emit_and_plan_go_with_it(file: str, tmp_path: Path) -> None:
    code, text = run_command(f"{GPUS} --calibration {file} --emit plan")
    assert code == 0
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    code, text = run_command(f"gpus --plan {plan} --calibration {file}", width=100)
    assert code == 0
    assert "12 of your runs" in text


def test_the_key_of_a_replica_knows_its_degree() -> None:
    from capplan.cli.inputs import Inputs
    from capplan.cli.serving import ServingOptions, serving_of

    blank = dict.fromkeys(ServingOptions._fields) | {"hardware": "h100", "tp": "2"}
    serving = serving_of(ServingOptions(**blank), None, 1, Inputs())  # type: ignore[arg-type]
    calibrated = replace(serving, calibration=Calibration(own=own(0.9, 1.1)))
    key = key_of(calibrated, 0.5)
    assert key.own is not None
    assert key.own.unlike == ("TP 1",)
    assert TABLE_RUNS > 0
