"""Variants of a plan, and the incident: what cures it, and what that costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, run_command

from capplan.errors import CapplanError
from capplan.planner.variants import MOST_EFFECTS, _size
from capplan.specs.plan import read_plan
from capplan.specs.plan_variants import BASE, Variant, variant_named, variants_of

EXAMPLES = ROOT / "capplan" / "examples"
PLAN = """\
model: llama-3.1-8b
hardware: l4
note: as we have it
engine:
  max_num_seqs: 16
  max_model_len: 4096
traffic: {rate: 1/s, prompt: 100, output: 20, requests: 1200}
clients: {timeout: 5s, retries: 2}
"""


def read(folder: Path, variants: str, plan: str = PLAN) -> tuple[Variant, ...]:
    path = folder / "plan.yaml"
    path.write_text(plan + "variants:\n" + variants, encoding="utf-8")
    return variants_of(*read_plan(path))


# Laying over.


def test_mappings_are_joined_and_the_rest_is_replaced(tmp_path: Path) -> None:
    base, small, calm = read(
        tmp_path,
        "  small: {note: fewer, engine: {max_num_seqs: 4}, deployment: {replicas: 2}}\n"
        "  calm: {clients: ~, traffic: {rate: 500/min}}\n",
    )
    assert (base.name, base.note, base.changes) == (BASE, "as we have it", ())
    assert small.note == "fewer"
    assert small.plan.engine.settings.max_num_seqs == 4
    assert small.plan.engine.settings.max_model_len == 4096
    assert small.plan.deployment.replicas == 2
    assert small.plan.clients == base.plan.clients
    assert small.changes == (("engine.max_num_seqs", 16, 4), ("deployment.replicas", None, 2))
    assert calm.note is None
    assert calm.plan.clients is None
    assert calm.plan.traffic.rate.rate == pytest.approx(500 / 60)  # type: ignore[union-attr]
    assert calm.plan.traffic.requests == 1200
    assert [change[0] for change in calm.changes] == ["clients", "traffic.rate"]


@pytest.mark.parametrize(
    ("variants", "message", "line"),
    [
        (
            "  a: {engine: {max_num_seqs: 4}}\n  b:\n    engine: {max_num_seq: 4}",
            "max_num_seq`",
            12,
        ),
        ("  a:\n    engine:\n      max_num_seqs: 0", "max_num_seqs` should be 1 or more", 12),
        ("  a: {deployment: {replica: 2}}", "`deployment.replica` is not a known", 10),
        ("  a: {model: ~}", "`model` is missing", 10),
        ("  a:\n    variants: {b: {model: x}}", "has no variants of its own", 11),
        ("  {}", "variants", 9),
        ("  a: 3", "variants.a` should be a mapping", 10),
    ],
)
def test_faults_are_shown_where_they_stand(
    tmp_path: Path, variants: str, message: str, line: int
) -> None:
    with pytest.raises(CapplanError) as caught:
        read(tmp_path, variants + "\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_a_fault_that_a_variant_makes_of_the_plan_is_shown_in_the_plan(tmp_path: Path) -> None:
    plan = PLAN.replace("{timeout: 5s, retries: 2}", "{timeout: 5s, cancels: false}")
    with pytest.raises(CapplanError, match="says nothing without a `timeout`") as caught:
        read(tmp_path, "  a: {clients: {timeout: ~}}\n", plan)
    assert caught.value.location is not None
    assert caught.value.location.line == 8


def test_a_variant_by_name(tmp_path: Path) -> None:
    read(tmp_path, "  small: {engine: {max_num_seqs: 4}}\n")
    plan, document = read_plan(tmp_path / "plan.yaml")
    assert variant_named("small", plan, document).plan.engine.settings.max_num_seqs == 4
    assert variant_named(BASE, plan, document).plan is plan
    with pytest.raises(CapplanError, match="no variant `smal`") as caught:
        variant_named("smal", plan, document)
    assert caught.value.hint == "did you mean `small`?"


# Effects.


@pytest.mark.parametrize(
    ("kind", "before", "after", "counts"),
    [
        ("duration", 1.0, 1.05, False),
        ("duration", 1.0, 1.2, True),
        ("duration", 1.2, 1.0, True),
        ("share", 0.0, 0.005, False),
        ("share", 0.5, 0.52, True),
        ("count", 0.0, 3.0, False),
        ("count", 0.0, 30.0, True),
        ("count", 0.0, 0.0, False),
    ],
)
def test_what_counts_as_an_effect(kind: str, before: float, after: float, counts: bool) -> None:
    assert bool(_size(kind, before, after)) is counts


# On the command line.


@pytest.fixture
def small_plan(tmp_path: Path) -> Path:
    read(tmp_path, "  one at a time: {engine: {max_num_seqs: 1}}\n  twin: {note: the same}\n")
    return tmp_path / "plan.yaml"


def test_side_by_side(small_plan: Path) -> None:
    code, text = run_command(f"simulate --plan {small_plan} --json")
    document = json.loads(text)
    base, alone, twin = document["result"]["variants"]
    assert document["schema"] == "capplan.simulate-variants/1"
    assert code == (0 if document["result"]["feasible"] else 1)
    assert twin["result"] == base["result"]  # the same requests, and nothing is different
    assert twin["better"] == twin["worse"] == twin["changes"] == []
    assert alone["changes"] == [{"field": "engine.max_num_seqs", "before": "16", "after": "1"}]
    assert "answered_fraction" in {effect["key"] for effect in alone["worse"]}
    assert alone["better"] == []  # the latencies of those who did not wait say nothing
    for figure in document["result"]["figures"]:
        assert len(figure["values"]) == 3
        assert figure["values"][2] == figure["values"][0]
    for variant in document["result"]["variants"]:
        assert max(len(variant["better"]), len(variant["worse"])) <= MOST_EFFECTS


@pytest.mark.parametrize("width", [42, 80, 140])
def test_what_does_not_fit_stands_in_a_further_table(small_plan: Path, width: int) -> None:
    _, text = run_command(f"simulate --plan {small_plan} --format table", width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("Side by side, continued") == (1 if width == 42 else 0)


def test_one_row_a_variant_for_programs(small_plan: Path) -> None:
    _, text = run_command(f"simulate --plan {small_plan}")
    head, *rows = [line.split("\t") for line in text.splitlines()]
    assert head[:3] == ["variant", "verdict", "answered_fraction"]
    assert [row[0] for row in rows] == [BASE, "one at a time", "twin"]


def test_a_variant_alone_is_the_usual_answer(small_plan: Path) -> None:
    _, text = run_command(f"simulate --plan {small_plan} --variant twin --json")
    alone = json.loads(text)
    _, text = run_command(f"simulate --plan {small_plan} --json")
    together = json.loads(text)
    assert alone["schema"] == "capplan.simulate/1"
    assert alone["result"] == together["result"]["variants"][2]["result"]


# The incident.


@pytest.fixture(scope="module")
def incident() -> dict[str, dict[str, Any]]:
    """Figures by variant."""
    _, text = run_command(f"simulate --plan {EXAMPLES / 'incident.yaml'} --json")
    result = json.loads(text)["result"]
    return {
        variant["name"]: {f["key"]: f["values"][index] for f in result["figures"]}
        for index, variant in enumerate(result["variants"])
    }


def test_the_incident_looks_healthy_and_is_not(incident: dict[str, dict[str, Any]]) -> None:
    """The figures of the report: TTFT P99 of 12 s, a busy GPU, a TPOT that nobody minds."""
    seen = incident[BASE]
    assert 9.0 < seen["ttft_p99_s"] < 15.0
    assert seen["tpot_p50_s"] < 0.05
    assert seen["busy_fraction"] > 0.95
    assert seen["attempts_per_request"] > 1.1  # users press the button again
    assert seen["attempt_ttft_p99_s"] < 5.0  # and the server counts each press on its own


def test_what_cures_what_and_what_it_costs(incident: dict[str, dict[str, Any]]) -> None:
    seen, cap = incident[BASE], incident["lower cap"]
    chunked, guarded = incident["chunking"], incident["admission control"]
    # Chunking: running answers no longer stand still while whole prompts are computed.
    assert chunked["itl_p99_s"] < 0.4 * seen["itl_p99_s"]
    assert chunked["tpot_p99_s"] < 0.6 * seen["tpot_p99_s"]
    assert chunked["ttft_p99_of_documents_s"] > 0.95 * seen["ttft_p99_of_documents_s"]
    # A lower cap: those who run are fewer and faster, the others wait for longer.
    assert cap["tpot_p99_s"] < 0.7 * seen["tpot_p99_s"]
    assert cap["ttft_p99_s"] > 1.05 * seen["ttft_p99_s"]
    # Admission control: a short queue for those who get in, and some do not.
    assert guarded["ttft_p99_of_chat_s"] < 0.5 * seen["ttft_p99_of_chat_s"]
    assert guarded["wasted_fraction"] < 0.01
    assert 0.0 < guarded["rejected_fraction"] < 0.2
    assert guarded["goodput_per_s"] > seen["goodput_per_s"]


def test_the_retry_storm(incident: dict[str, dict[str, Any]]) -> None:
    """The engine works for clients who have gone, and those who come meanwhile go as well."""
    storm = incident["disconnects lost"]
    assert storm["attempts_per_request"] > 3.0
    assert storm["answered_fraction"] < 0.5
    assert storm["wasted_fraction"] > 0.8
    assert storm["busy_fraction"] > 0.95


def test_each_replica_is_shown(tmp_path: Path) -> None:
    """One of three dies for half of the run."""
    plan = PLAN + "deployment: {replicas: 3}\nfailures: [{replica: 1, at: 300s, down_for: 600s}]\n"
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    line = f"simulate --plan {tmp_path / 'plan.yaml'}"
    _, text = run_command(f"{line} --json")
    result = json.loads(text)["result"]
    first, dead, last = result["replicas"]
    assert (first["num_failures"], dead["num_failures"], last["num_failures"]) == (0, 1, 0)
    assert sum(load["num_sent"] for load in result["replicas"]) == result["num_attempts"]
    assert sum(load["num_answered"] for load in result["replicas"]) == result["num_answered"]
    assert dead["num_answered"] == pytest.approx(first["num_answered"] / 2, rel=0.3)
    assert dead["busy_fraction"] < first["busy_fraction"]
    _, text = run_command(f"{line} --format table", width=80)
    assert "1 (failed)" in text


def test_classes_of_the_traffic_have_latencies_of_their_own(tmp_path: Path) -> None:
    plan = PLAN.replace(
        "{rate: 1/s, prompt: 100, output: 20, requests: 1200}",
        "{requests: 1200, classes: [{name: short, rate: 2/s, prompt: 20, output: 5},"
        " {name: long, rate: 1/s, prompt: 2000, output: 5}]}",
    )
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    _, text = run_command(f"simulate --plan {tmp_path / 'plan.yaml'} --json")
    result = json.loads(text)["result"]
    long, short = result["classes"]
    assert (long["name"], short["name"]) == ("long", "short")
    assert long["num_measured"] + short["num_measured"] == result["num_measured"]
    medians = [one["latencies"][0]["percentiles"][0]["value_s"] for one in (short, long)]
    overall = result["latencies"][0]["percentiles"][0]["value_s"]
    assert medians[0] < overall < medians[1]
    assert medians[1] > 2 * medians[0]
