"""The fleet: the worked example, monotone properties, infeasible questions, node rounding."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import UnsupportedError
from capplan.planner.gpus import plan, plan_fleet
from capplan.planner.question import (
    EngineSettings,
    FleetSettings,
    Limits,
    Question,
    Workload,
)
from capplan.planner.replica import Replica
from capplan.planner.suggestions import feasible
from capplan.results.gpus import GpusPlan
from capplan.specs.catalogue import load_hardware, load_model
from capplan.units import parse_duration, parse_tokens

HARDWARE = {name: load_hardware(name).spec for name in ("a100-sxm-80gb", "h100-sxm-80gb", "l40s")}
MODELS = {
    name: load_model(name).spec
    for name in (
        "llama-3.1-8b",
        "llama-3.1-70b",
        "qwen3-30b-a3b",
        "deepseek-v2-lite",
        "gemma-3-27b",
        "qwen3.5-27b",
    )
}


def question(
    model: str = "llama-3.1-8b",
    hardware: str = "a100-sxm-80gb",
    rate: float = 100.0,
    prompt: int = 1024,
    output: int = 256,
    ttft: float = 0.4,
    tpot: float = 0.025,
    tp: int | None = None,
    fleet: FleetSettings | None = None,
) -> Question:
    return Question(
        MODELS[model],
        hardware,
        HARDWARE[hardware],
        Workload(rate, prompt, output),
        Limits(ttft, tpot),
        EngineSettings(None, "bf16", tp),
        fleet or FleetSettings(),
    )


questions = st.builds(
    question,
    model=st.sampled_from(sorted(MODELS)),
    hardware=st.sampled_from(sorted(HARDWARE)),
    rate=st.floats(0.01, 1e4),
    prompt=st.integers(1, 6000),
    output=st.integers(1, 2000),
    ttft=st.floats(0.001, 30),
    tpot=st.floats(0.001, 1),
    tp=st.sampled_from([None, 1, 2, 4]),
)


def gpus(answer: GpusPlan) -> float:
    return answer.num_gpus if answer.num_gpus is not None else float("inf")


@settings(max_examples=150, deadline=None)
@given(questions, st.floats(1.0, 3.0))
def test_more_traffic_or_a_tighter_limit_never_needs_fewer_gpus(
    asked: Question, factor: float
) -> None:
    base = gpus(plan(asked))
    workload, limits = asked.workload, asked.limits
    more = replace(
        asked, workload=replace(workload, arrival_rate_per_s=workload.arrival_rate_per_s * factor)
    )
    assert gpus(plan(more)) >= base
    for changed in (
        replace(limits, slo_tpot_s=limits.slo_tpot_s / factor),
        replace(limits, slo_ttft_s=limits.slo_ttft_s / factor),
    ):
        assert gpus(plan(replace(asked, limits=changed))) >= base


@settings(max_examples=60, deadline=None)
@given(questions)
def test_bounds_are_ordered_and_replicas_whole(asked: Question) -> None:
    answer = plan(asked)
    if not answer.feasible:
        assert answer.num_gpus is None
        assert answer.bounds is None
        return
    bounds = answer.bounds
    assert bounds is not None
    assert answer.num_gpus == bounds.num_gpus_combined
    assert bounds.num_gpus_combined >= max(
        bounds.num_gpus_memory, bounds.num_gpus_decode, bounds.num_gpus_prefill
    )
    assert answer.num_gpus == answer.num_replicas * answer.tp
    assert answer.num_gpus_rounded >= answer.num_gpus + answer.tp  # one spare
    assert answer.num_gpus_rounded % answer.gpus_per_node == 0
    assert all(level.predicted_s <= level.limit_s * (1 + 1e-9) for level in answer.service_levels)


@settings(max_examples=60, deadline=None)
@given(questions)
def test_a_suggestion_leads_to_a_feasible_question(asked: Question) -> None:
    answer = plan(asked)
    if answer.feasible or not answer.suggestions:
        return
    changed = asked
    for suggestion in answer.suggestions:
        if suggestion.option == "--slo-ttft":
            limit = parse_duration(suggestion.value)
            changed = replace(changed, limits=replace(changed.limits, slo_ttft_s=limit))
        elif suggestion.option == "--slo-tpot":
            limit = parse_duration(suggestion.value)
            changed = replace(changed, limits=replace(changed.limits, slo_tpot_s=limit))
    if changed is asked:
        option, value = answer.suggestions[0].option, answer.suggestions[0].value
        if option == "--tp":
            changed = replace(asked, engine=replace(asked.engine, tp=int(value)))
        elif option == "--dtype":
            changed = replace(asked, engine=replace(asked.engine, dtype=value))
        elif option == "--hardware":
            changed = replace(asked, hardware_id=value, hardware=load_hardware(value).spec)
        elif option == "--prompt-tokens":
            prompt = parse_tokens(value)
            changed = replace(asked, workload=replace(asked.workload, prompt_tokens=prompt))
    assert plan(changed).feasible, answer.suggestions


def test_worked_example() -> None:
    shape = load_model("docs/examples/llm-7b.yaml").spec
    asked = replace(
        question(fleet=FleetSettings(num_spares=0, replica_output_tokens_per_s=2500)),
        model=shape,
        engine=EngineSettings(
            None,
            "fp16",
            None,
            gpu_memory_utilization=1.0,
            reserve_bytes=16_000_000_000,
            gpu_memory_bytes=80_000_000_000,
        ),
    )
    answer = plan(asked)
    assert answer.bounds is not None
    assert answer.concurrency == pytest.approx(677.5)
    assert answer.kv_bytes_per_token == 65_536
    assert answer.kv_demand_bytes == pytest.approx(677.5 * 80 * 2**20)
    assert answer.bounds.num_gpus_memory == 2
    assert answer.bounds.num_gpus_decode == 11
    assert (answer.num_gpus, answer.num_gpus_rounded, answer.num_nodes) == (11, 16, 2)
    assert answer.binding == "decode"


def test_one_output_token_has_no_decode() -> None:
    answer = plan(question(output=1))
    assert answer.feasible
    assert [level.name for level in answer.service_levels] == ["TTFT"]


def test_auto_tp_is_the_fewest_gpus() -> None:
    # "The smallest degree that meets TPOT" would take TP 1 here, and with a tighter limit, which
    # only TP 2 meets, fewer.
    just = question(tpot=0.012)
    smallest = gpus(plan(replace(just, engine=replace(just.engine, tp=1))))
    assert gpus(plan(just)) < smallest


def test_a_replica_does_not_straddle_nodes_it_fits_in() -> None:
    asked = question(model="llama-3.1-70b", hardware="h100-sxm-80gb", rate=20, tpot=0.04, tp=4)
    # A node of 6 holds one replica of 4.
    answer = plan(replace(asked, fleet=FleetSettings(gpus_per_node=6)))
    assert answer.num_replicas is not None
    assert answer.num_nodes == answer.num_replicas + 1


def test_comparison_is_sorted_by_cost_and_keeps_the_infeasible_last() -> None:
    asked = [question(hardware=name, tpot=0.008) for name in sorted(HARDWARE)]
    result = plan_fleet(asked)
    costs = [p.usd_per_hour for p in result.candidates if p.usd_per_hour is not None]
    assert costs == sorted(costs)
    flags = [p.feasible for p in result.candidates]
    assert flags == sorted(flags, reverse=True)
    assert result.hardware == result.candidates[0].hardware


def test_feasible_agrees_with_the_plan() -> None:
    for tpot in (0.001, 0.009, 0.01, 0.02):
        asked = question(tpot=tpot, tp=1)
        assert feasible(Replica(asked, 1)) == plan(asked).feasible


def test_an_accelerator_that_lacks_the_format_does_not_spoil_a_comparison() -> None:
    asked = [question(hardware=name) for name in ("a100-sxm-80gb", "h100-sxm-80gb")]
    asked = [replace(item, engine=replace(item.engine, dtype="fp8")) for item in asked]
    result = plan_fleet(asked)
    assert (result.hardware, result.feasible) == ("h100-sxm-80gb", True)
    lacking = result.candidates[-1]
    assert (lacking.hardware, lacking.binding) == ("a100-sxm-80gb", "unsupported")
    assert "no fp8 tensor cores" in str(lacking.why)
    with pytest.raises(UnsupportedError):
        plan_fleet(asked[:1])
