"""The simulator against recorded runs of the engine's scheduler, every field of every step."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fuzz_simulator import difference
from random_scenarios import scenario as random_scenario
from reference_scheduler import replay as reference

from capplan.simulator.config import VLLM_0_11
from capplan.simulator.detailed import UnorderedRequestsError
from capplan.simulator.traces import (
    config_of,
    first_difference,
    replay,
    replay_in_detail,
    replay_results,
)

FOLDER = Path(__file__).parent / "engine_traces"
FAMILIES = {"sync": 92, "async": 54, "interval": 3, "hybrid": 29, "spec": 14}
PLAIN = ["sync", "async", "interval"]


@cache
def recorded(family: str) -> dict[str, dict[str, Any]]:
    with tarfile.open(FOLDER / f"{family}.tar.xz") as archive:
        files = [archive.extractfile(member) for member in archive.getmembers()]
        scenarios = [json.load(file) for file in files if file is not None]
    return {scenario["name"]: scenario for scenario in scenarios}


@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_runs_are_reproduced_step_for_step(family: str) -> None:
    runs = recorded(family)
    assert len(runs) == FAMILIES[family]
    found = {name: first_difference(run, replay(run)) for name, run in runs.items()}
    assert {name: text for name, text in found.items() if text} == {}


@pytest.mark.parametrize("family", PLAIN)
def test_the_same_without_recording(family: str) -> None:
    """Recording expands what the counters did; it must not change it."""
    for name, run in recorded(family).items():
        got = replay_results(run, config_of(run))
        assert got["per_request"] == run["per_request"], name
        shared = run["summary"].keys() & got["summary"].keys()
        assert all(got["summary"][key] == run["summary"][key] for key in shared), name


@pytest.mark.parametrize("family", PLAIN)
def test_the_path_by_requests_equals_the_counters(family: str) -> None:
    for name, run in recorded(family).items():
        assert first_difference(run, replay_in_detail(run, config_of(run))) is None, name


@pytest.mark.parametrize("family", PLAIN)
def test_the_naive_reference_is_right(family: str) -> None:
    for name, run in recorded(family).items():
        assert first_difference(run, reference(run)) is None, name


def test_two_thousand_requests() -> None:
    """Time to first token and finish of each, as the engine's scheduler had them."""
    run = json.loads(lzma.decompress((FOLDER / "perf_2000.json.xz").read_bytes()))
    entries = [
        {"id": name, "arrival_s": arrival, "prompt_len": prompt, "output_len": output}
        for name, arrival, prompt, output in run["requests"]
    ]
    got = replay_results(run | {"requests": entries}, config_of(run))
    times = [[r["id"], r["ttft_s"], r["finish_s"], r["preemptions"]] for r in got["per_request"]]
    assert len(times) == 2000
    assert times == run["per_request"]
    assert got["summary"]["num_steps"] == run["summary"]["num_steps"]


SENSITIVITY = json.loads((FOLDER / "version_sensitivity.json").read_text(encoding="utf-8"))


def old_difference(name: str) -> str | None:
    """How a run by the rules of 0.11 leaves the recording of 0.33."""
    run = recorded("sync")[name]
    try:
        return first_difference(run, replay(run, VLLM_0_11))
    except UnorderedRequestsError:
        return "fails"


def test_the_old_rules_change_nothing_where_they_did_not() -> None:
    assert len(SENSITIVITY["identical"]) == 60
    assert {n: d for n in SENSITIVITY["identical"] if (d := old_difference(n))} == {}


@pytest.mark.parametrize("name", SENSITIVITY["different"])
def test_the_old_rules_differ_where_they_did(name: str) -> None:
    step = SENSITIVITY["different"][name]["first_different_step"]
    found = old_difference(name)
    assert found is not None
    assert found.startswith("fails" if step is None else f"step {step}:")


@pytest.mark.parametrize("part", range(4))
def test_fuzz_against_the_naive_reference(part: int) -> None:
    """A short run of tests/fuzz_simulator.py, which checks conservation in every step, too."""
    for seed in range(part * 150, part * 150 + 150):
        found, _, _ = difference(random_scenario(seed))
        assert found is None, f"seed {seed}: {found}"


def test_a_difference_is_found() -> None:
    """The comparison sees a changed clock, order, and count."""
    run = recorded("sync")["plain_01_five_at_zero"]
    got = replay(run)
    got["steps"][3]["t"] += 2.0**-40
    assert str(first_difference(run, got)).startswith("step 3: t ")
    got = replay(run)
    first = got["steps"][0]["sched"]
    got["steps"][0]["sched"] = dict(reversed(first.items()))
    assert str(first_difference(run, got)).startswith("step 0: sched ")


def test_the_benchmark_script_says_how_many_are_identical(tmp_path: Path) -> None:
    script = FOLDER.parent.parent / "benchmarks" / "engine_traces.py"

    def output(place: Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, str(script), str(place)], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout

    code, text = output(FOLDER / "interval.tar.xz")
    assert (code, text.splitlines()[-1]) == (0, "3 identical, 0 different")
    run = recorded("sync")["plain_01_five_at_zero"]
    changed = run | {"config": run["config"] | {"max_num_batched_tokens": 255}}
    (tmp_path / "a.json").write_text(json.dumps(run), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(changed), encoding="utf-8")
    code, text = output(tmp_path)
    assert code == 1
    assert text.splitlines()[1].startswith("different  b.json  step 0: dt recorded ")
    assert text.splitlines()[-1] == "1 identical, 1 different"
