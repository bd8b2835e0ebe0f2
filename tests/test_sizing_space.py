"""What is searched beyond TP: attention copies, prefix caching, and why a kind is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_command

from capplan.errors import UnsupportedError
from capplan.performance.kv_engine import KvEngine
from capplan.performance.step import StepModel
from capplan.planner.parallelism import check_copies, link_fault, repeats_kv
from capplan.planner.question import EngineSettings, FleetSettings, Limits, Question, Workload
from capplan.planner.sizing.space import SearchSpace, candidates_of
from capplan.results.sizing import Kind
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.engine_catalogue import load_engine

DEEPSEEK = "gpus --model deepseek-v3 --hardware h200-sxm-141gb --qps 20 --slo-percentile 90"
LOOSE = "--slo-ttft 2s --slo-tpot 80ms"


def kinds_of(line: str) -> tuple[int, dict[str, object]]:
    code, out = run_command(f"{line} --json")
    found: dict[str, object] = json.loads(out)["result"]
    return code, found


def test_tp_repeats_a_latent_and_not_heads() -> None:
    assert repeats_kv(load_model("deepseek-v3").spec)
    assert not repeats_kv(load_model("mixtral-8x7b").spec)
    assert not repeats_kv(load_model("llama-3.1-8b").spec)


def test_copies_share_experts_or_are_replicas() -> None:
    dense, experts = load_model("llama-3.1-8b").spec, load_model("deepseek-v3").spec
    node = load_hardware("h200-sxm-141gb").spec
    check_copies(experts, node, 1, 8, 8)
    check_copies(experts, node, 2, 4, 8)
    with pytest.raises(UnsupportedError) as refused:
        check_copies(dense, node, 1, 2, 2)
    assert refused.value.hint == "write 2 replicas: each is a whole copy"
    with pytest.raises(UnsupportedError) as refused:
        check_copies(experts, node, 1, 8, 1)
    assert refused.value.hint == "write ep: 8"
    with pytest.raises(UnsupportedError, match="links 8 accelerators"):
        check_copies(experts, node, 8, 3, 24)


def test_attention_copies_are_tried_where_tp_repeats_the_kv() -> None:
    code, result = kinds_of(f"{DEEPSEEK} {LOOSE}")
    assert code == 0
    kinds = result["sizing"]["kinds"]  # type: ignore[index]
    shapes = {(kind["tp"], kind["dp"], kind["ep"]): kind for kind in kinds}
    copies, sharded = shapes[1, 8, 8], shapes[8, 1, 1]
    assert copies["gpus_per_replica"] == sharded["gpus_per_replica"] == 8
    # Each of 8 copies holds an eighth of the batch's latents; TP holds all of them 8 times.
    assert copies["bound_requests_per_s"] > sharded["bound_requests_per_s"]
    assert shapes[1, 2, 2]["reason"] == "weights"
    assert copies["max_num_seqs"] == sharded["max_num_seqs"]  # the engine's flag: of one copy


def test_a_plan_with_copies_is_read_by_every_command(tmp_path: Path) -> None:
    code, text = run_command(f"{DEEPSEEK} {LOOSE} --dp-attention 8 --tp 1 --emit plan")
    assert code == 0
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    assert "dp: 8" in text
    assert "ep: 8" in text
    code, result = kinds_of(f"gpus --plan {plan} --slo-percentile 90")
    assert result["served_as"]["dp"] == 8  # type: ignore[index]
    assert result["num_gpus"] % 8 == 0  # type: ignore[operator]
    code, out = run_command(f"simulate --plan {plan} --num-requests 1500 --json")
    inputs = json.loads(out)["inputs"]
    assert (inputs["dp"], inputs["ep"]) == (8, 8)
    code, out = run_command(f"check {plan} --format concise", refused=True)
    assert "CP002" not in out


def test_copies_of_a_dense_model_are_refused_by_name() -> None:
    code, result = kinds_of("gpus --hardware h100-sxm-80gb --tp 1 --dp-attention 4")
    assert code == 1
    (kind,) = result["sizing"]["kinds"]  # type: ignore[index]
    assert kind["reason"] == "unsupported"
    assert "has none" in kind["words"]


def test_a_group_that_no_link_joins_is_refused_for_its_interconnect() -> None:
    assert link_fault(load_hardware("h100-sxm-80gb").spec, 8) is None
    _, result = kinds_of("gpus --hardware h100-sxm-80gb --slo-percentile 90")
    refused = {kind["tp"]: kind["reason"] for kind in result["sizing"]["kinds"]}  # type: ignore[index]
    assert refused[16] == "interconnect"
    assert all(reason in (None, "dominated") for tp, reason in refused.items() if tp < 16)


def test_a_limit_missed_for_the_collectives_alone_is_the_interconnects() -> None:
    """Cards over PCIe: without the all-reduces each step would be quick enough."""
    model, card = load_model("llama-3.1-8b"), load_hardware("l4")

    def refused_at(slo_tpot_s: float) -> list[Kind]:
        question = Question(
            model.spec, card.id, card.spec, Workload(1.0, 1024, 256), Limits(5.0, slo_tpot_s),
            EngineSettings(None, "bf16", 4), FleetSettings(),
        )  # fmt: skip
        engine = KvEngine(load_engine("vllm", None), None, "bf16")
        kinds = candidates_of(question, model.id, engine, SearchSpace(tps=(4,)))
        steps.extend(one.replica.steps for one in kinds.able)
        return kinds.refused

    steps: list[StepModel] = []
    assert not refused_at(1.0)
    alone = steps[0].decode(1.0, steps[0].uniform_reads(1.0, 1024 + 128))
    assert alone.collective_s > 0
    (kind,) = refused_at(alone.total_s - alone.collective_s / 2)
    assert kind.reason == "interconnect"
    assert kind.words is not None
    assert kind.words.startswith("collectives take ")
    (kind,) = refused_at((alone.total_s - alone.collective_s) / 2)
    assert kind.reason == "tpot"


def test_caching_is_a_choice_where_requests_share_tokens() -> None:
    line = "gpus --plan capplan/examples/rag.yaml --tp 1 --slo-percentile 90"
    _, result = kinds_of(line)
    kinds = result["sizing"]["kinds"]  # type: ignore[index]
    assert [kind["enable_prefix_caching"] for kind in kinds] == [True, False]
    assert kinds[0]["bound_requests_per_s"] > kinds[1]["bound_requests_per_s"]
    _, result = kinds_of(f"{line} --no-enable-prefix-caching")
    assert len(result["sizing"]["kinds"]) == 1  # type: ignore[index]


def test_a_replica_of_copies_is_explained() -> None:
    """The bounds know no such replica, and the search does."""
    code, out = run_command(f"explain {DEEPSEEK} {LOOSE} --dp-attention 8 --tp 1")
    assert code == 0
    assert "The bounds know no replicas of this shape." in out
