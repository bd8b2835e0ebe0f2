"""Options that stand in for the plan's sections around the replicas, and what is assumed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from commands import ROOT, run_command

from capplan.cli.fleet import FleetOptions, fleet_of
from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError
from capplan.simulator.fleet.settings import Admission, Clients, FleetSettings, Routing
from capplan.specs.clients import AdmissionSpec, ClientsSpec, RouterSpec
from capplan.specs.plan import Plan

BARE = {"model": "llama-3.1-8b", "hardware": "l4"}


def fleet(plan: dict[str, Any], replicas: int = 1, **options: str) -> tuple[FleetSettings, Inputs]:
    inputs = Inputs()
    read = Plan.model_validate(BARE | plan) if plan else None
    return fleet_of(FleetOptions(**options), read, replicas, inputs), inputs


def test_nothing_said_is_patient_and_open() -> None:
    found, inputs = fleet({})
    assert found == FleetSettings()
    assert inputs.assumptions == []
    _, inputs = fleet({}, 3)
    assert [(a.what, a.value, a.option) for a in inputs.assumptions] == [
        ("router", "least-requests", "--router")
    ]


def test_options_alone() -> None:
    found, _ = fleet(
        {}, 2, router="random-of-two", client_timeout="3s", client_retries="2", max_queue_depth="9"
    )
    assert found.routing == Routing("random-of-two")
    assert found.clients == Clients(3.0, retries=2)
    assert found.admission == Admission(max_queue_depth=9)


def test_options_win_and_the_rest_of_the_section_stays() -> None:
    plan = {
        "clients": {"timeout": "9s", "retries": 3, "backoff": "fixed", "backoff_base": "250ms"},
        "admission": {"max_concurrency": 50, "retry_after": "1s"},
        "router": {"policy": "prefix-aware", "health_check_interval": "2s"},
    }
    found, _ = fleet(plan, 2, client_timeout="4s", client_retries="0", router="round-robin")
    assert found.clients == Clients(4.0, retries=0, backoff="fixed", backoff_s=0.25)
    assert found.admission == Admission(max_concurrency=50, retry_after_s=1.0)
    assert found.routing == Routing("round-robin", 2.0)


def test_what_matters_and_was_not_said_is_assumed() -> None:
    plan = {
        "clients": {"timeout": "9s", "retries": 3},
        "admission": {"max_queue_depth": 5},
        "router": {"policy": "prefix-aware"},
        "failures": [{"replica": 0, "at": "1min"}],
    }
    _, inputs = fleet(plan, 2)
    options = {assumption.option for assumption in inputs.assumptions}
    assert options == {
        "plan: clients.timeout_on", "plan: clients.cancels", "plan: clients.backoff",
        "plan: admission.retry_after", "plan: router.health_check_interval",
        "plan: router.cache_threshold", "plan: router.balance_abs_threshold",
        "plan: router.balance_rel_threshold",
    }  # fmt: skip
    for option in options:  # and the field is one that a plan knows
        section, _, field = option.removeprefix("plan: ").partition(".")
        spec = {"clients": ClientsSpec, "admission": AdmissionSpec, "router": RouterSpec}[section]
        assert field in spec.model_fields


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"router": "fastest"}, "--router: `fastest` is not a router"),
        ({"client_timeout": "5"}, "--client-timeout: `5` has no unit"),
        ({"client_timeout": "0s"}, "--client-timeout"),
        ({"client_retries": "-1"}, "--client-retries: `-1` is not a whole number"),
        ({"client_retries": "1000"}, "--client-retries: "),
        ({"max_queue_depth": "many"}, "--max-queue-depth: `many` is not a whole number"),
    ],
)
def test_faults_name_the_option(options: dict[str, str], message: str) -> None:
    with pytest.raises(CapplanError) as caught:
        fleet({}, 2, **options)
    assert caught.value.message.startswith(message)


def test_options_over_a_plan_of_texts() -> None:
    """Lengths, rates and durations of the plan are read once more beside the options."""
    plan = ROOT / "tests" / "data" / "variants.yaml"
    line = f"simulate --plan {plan} --variant patient --qps 2 --duration 5min --seed 3 --json"
    _, text = run_command(line)
    document = json.loads(text)
    assert document["inputs"]["arrival_rate_per_s"] == 2.0
    assert document["inputs"]["duration_s"] == 300.0
    assert document["inputs"]["mean_prompt_tokens"] == pytest.approx(200, rel=0.01)


@pytest.mark.parametrize("option", ["--records x.csv", "--timeline x.json", "--plot x.png"])
def test_files_of_one_run_need_one_variant(option: str) -> None:
    with pytest.raises(AssertionError, match="add --variant"):
        run_command(f"simulate --plan tests/data/variants.yaml {option}")
