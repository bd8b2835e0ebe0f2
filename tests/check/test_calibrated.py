"""`--calibration`, and `calibration:` of a deployment: times as of one's own servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import FINE, check, repository, write

from capplan.check.calibrations import read_own_servers
from capplan.check.config import Configs, read_config
from capplan.check.plan_bounds import bounded
from capplan.check.run import check_source
from capplan.check.source import Source

FIXED = "{value: 1.0, low: 0.5, high: 2.0, identified: false}"
SLOWER = f"""\
schema: capplan.calibration/1
hardware: h100-sxm-80gb
engine: vllm
models: [llama-3.1-8b]
tp: [1]
runs: 12
compute: {{value: 0.8, low: 0.75, high: 0.85, identified: true}}
bandwidth: {{value: 0.8, low: 0.75, high: 0.85, identified: true}}
collective_latency: {FIXED}
step_us: {{value: 500.0, low: 300.0, high: 700.0, identified: true}}
sequence_us: {{value: 0.0, low: -10.0, high: 10.0, identified: false}}
errors: {{before: 0.2, after: 0.03, left_out: 0.04}}
bands:
  - {{figure: tpot, loaded: false, runs: 12, low: 0.97, high: 1.03}}
"""
# Limits that no server meets: what was predicted of them is said.
CONFIG = """\
deployments:
  chat:
    traffic: {rate: 2, prompt: 256, output: 32, requests: 300}
    slos: {percentile: 90, ttft: 1ms, tpot: 1ms}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, chat__yaml=FINE, __capplan__yaml=CONFIG, mine__yaml=SLOWER)


def missed(folder: Path, *words: str) -> dict[str, Any]:
    """The limit on TPOT, as the rule has it."""
    found = json.loads(check(folder, "--json", *words).out)["result"]["findings"]
    return next(f for f in found if f["rule"] == "CP040" and "TPOT" in f["message"])


def test_times_are_those_of_the_calibrated_servers(folder: Path) -> None:
    plain, own = missed(folder), missed(folder, "--calibration", "mine.yaml")
    assert plain["message"] != own["message"]
    assert own["assumed"][0] == (
        "calibration mine.yaml: 12 runs of h100-sxm-80gb under vllm; compute x 0.800, "
        "bandwidth x 0.800"
    )
    assert any("12 of your runs" in step for step in own["arithmetic"])
    assert not any("of your runs" in step for step in plain["arithmetic"])
    # It accepts, or is accepted by, the same baseline.
    assert plain["fingerprint"] == own["fingerprint"]


def test_the_configuration_may_state_it_for_a_deployment(folder: Path) -> None:
    asked = missed(folder, "--calibration", "mine.yaml")
    write(folder, __capplan__yaml=CONFIG + "    calibration: mine.yaml\n")
    assert missed(folder) == asked
    write(folder, mine__yaml=SLOWER.replace("h100-sxm-80gb", "a100-sxm-80gb"))
    ran = check(folder)
    assert ran.code == 2
    assert "is of a100-sxm-80gb, the deployment is on h100-sxm-80gb" in ran.err


def test_bounds_take_it_too(folder: Path) -> None:
    """They stand in where an engine is not simulated."""
    given = Configs(own=read_own_servers("mine.yaml", folder)).of(folder / "chat.yaml")
    source = Source("chat", FINE)
    (plain,) = check_source(source, read_config(folder / ".capplan.yaml"), {}).cases
    (own,) = check_source(source, given, {}).cases
    slow, quick = bounded(own), bounded(plain)
    assert slow is not None
    assert quick is not None
    assert all(
        ours.value_s > theirs.value_s
        for ours, theirs in zip(slow.levels, quick.levels, strict=True)
        if ours.value_s is not None and theirs.value_s is not None
    )
    assert slow.assumed == (*own.own.notes, *quick.assumed)


def test_what_a_change_brings_is_predicted_by_it(folder: Path) -> None:
    repository(folder)
    write(folder, chat__yaml=FINE.replace("replicas: 2", "replicas: 3"))

    def change(*words: str) -> dict[str, Any]:
        ran = check(folder, "--json", "--diff", "HEAD", *words)
        found = json.loads(ran.out)["result"]["changes"]
        assert len(found) == 1
        assert isinstance(found[0], dict)
        return found[0]

    plain, own = change(), change("--calibration", "mine.yaml")
    for when in ("before", "after"):
        assert own[f"ttft_s_{when}"] > plain[f"ttft_s_{when}"]


def test_one_that_nothing_here_runs_on_is_named(folder: Path) -> None:
    write(folder, mine__yaml=SLOWER.replace("h100-sxm-80gb", "a100-sxm-80gb"))
    ran = check(folder, "--json", "--calibration", "mine.yaml")
    assert ran.err == "note: mine.yaml is of a100-sxm-80gb, on which nothing here is deployed\n"
    answer = json.loads(ran.out)
    assert answer["inputs"]["calibration"] == "mine.yaml"
    assert [found["calibration"] for found in answer["result"]["deployments"]] == [None]
