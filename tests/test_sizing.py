"""Fleets sized by simulation: the grid, monotone answers, the proof, the store, bad input."""

from __future__ import annotations

import contextlib
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from commands import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.errors import CapplanError
from capplan.performance.kv_engine import KvEngine
from capplan.planner.question import EngineSettings, FleetSettings, Limits, Question, Workload
from capplan.planner.sizing import parallel
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.demand import Demand
from capplan.planner.sizing.grid import NUM_RATES, highest, rate_at
from capplan.planner.sizing.limits import ClassLimit, Promise
from capplan.planner.sizing.proof import prove
from capplan.planner.sizing.sample import Sample, judge
from capplan.planner.sizing.search import Search
from capplan.planner.sizing.space import SearchSpace, candidates_of
from capplan.planner.sizing.store import PointFiles
from capplan.planner.sizing.sustained import GROUP, replicas_for
from capplan.simulator.yardstick import Limit
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.engine_catalogue import load_engine
from capplan.specs.traffic import TrafficSpec

MODEL, HARDWARE = load_model("llama-3.1-8b"), load_hardware("h100-sxm-80gb")


def promise(ttft: float = 0.4, tpot: float = 0.025, percentile: float = 95.0) -> Promise:
    """P95 needs a fifth of the requests of P99."""
    limits = (Limit("ttft", ttft, percentile), Limit("tpot", tpot, percentile))
    return Promise(tuple(ClassLimit(limit) for limit in limits))


def candidate(aims: Promise, rate: float = 100.0, tp: int = 1) -> Candidate:
    ttft, tpot = (each.limit.limit_s for each in aims.limits)
    question = Question(
        MODEL.spec, HARDWARE.id, HARDWARE.spec, Workload(rate, 1024, 256), Limits(ttft, tpot),
        EngineSettings(None, "bf16", tp), FleetSettings(),
    )  # fmt: skip
    engine = KvEngine(load_engine("vllm", None), None, "bf16")
    kinds = candidates_of(question, MODEL.id, engine, SearchSpace(tps=(tp,)))
    assert len(kinds.able) + len(kinds.refused) == 1
    return kinds.able[0]


def search_of(aims: Promise, rate: float, points: PointFiles) -> Search:
    demand = Demand(TrafficSpec.model_validate({"rate": f"{rate:.9g}"}))
    return Search(demand, aims, points=points)


def num_replicas(rate: float, aims: Promise, points: PointFiles) -> float:
    question = search_of(aims, rate, points)
    found = replicas_for(question.curve(candidate(aims, rate)), question.demand.peak_per_s)
    return math.inf if found is None else found[0]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> PointFiles:
    """Simulated once for all examples: limits and traffic share the points of the grid."""
    return PointFiles(tmp_path_factory.mktemp("points"), "test")


# The grid


@given(st.sets(st.integers(1, NUM_RATES - 1)), st.sets(st.integers(1, NUM_RATES - 1)))
def test_fewer_passing_rates_never_raise_the_result(one: set[int], other: set[int]) -> None:
    """Whatever noise does to single points: this is what makes answers monotone."""
    assert highest(lambda place: place in one & other) <= highest(lambda place: place in one)


@given(st.integers(1, NUM_RATES - 1))
def test_bisection_finds_the_last_of_a_run(last: int) -> None:
    assert highest(lambda place: place <= last) == last
    assert rate_at(last) < rate_at(last + 1)


# Monotone answers


@settings(max_examples=12, deadline=None)
@given(
    rate=st.floats(1.0, 2000.0),
    more=st.floats(1.0, 3.0),
    ttft=st.sampled_from([0.15, 0.2, 0.4]),
    tpot=st.sampled_from([0.015, 0.02, 0.025]),
    tighter=st.floats(1.0, 1.5),
)
def test_more_traffic_or_a_tighter_limit_never_needs_fewer_replicas(
    points: PointFiles, rate: float, more: float, ttft: float, tpot: float, tighter: float
) -> None:
    base = num_replicas(rate, promise(ttft, tpot), points)
    assert num_replicas(rate * more, promise(ttft, tpot), points) >= base
    assert num_replicas(rate, promise(ttft / tighter, tpot), points) >= base
    assert num_replicas(rate, promise(ttft, tpot / tighter), points) >= base


def test_a_simulated_replica_carries_no_more_than_its_bound(points: PointFiles) -> None:
    aims = promise()
    one = candidate(aims)
    found = search_of(aims, 100.0, points).curve(one).sustained(GROUP)
    assert found is not None
    assert 0 < found.requests_per_s <= one.bound_per_s * 1.05
    assert found.fails_at_per_s == pytest.approx(found.requests_per_s * 1.02)
    assert all(level.holds for level in found.levels)
    assert found.binding == "tpot"


# Judging a point


def test_limits_are_held_against_percentiles() -> None:
    rows = [(0.1 + i * 1e-4, 0.02, 5.0, 0) for i in range(1001)]
    sample = Sample.of(rows, saturated=False)
    aims = promise(percentile=99.0)
    found = judge(sample, aims, ("",), by_interval=False)
    assert found.verdict == "holds"
    assert found.levels[0].value_s == pytest.approx(0.1 + 990e-4, rel=1e-6)
    assert judge(replace(sample, saturated=True), aims, ("",), by_interval=False).verdict == "fails"
    assert judge(sample, promise(ttft=0.19), ("",), by_interval=False).verdict == "fails"


def test_a_request_without_an_answer_misses() -> None:
    rows = [(0.1, 0.02, 5.0, 0)] * 80 + [(math.inf, None, math.inf, 0)] * 20
    found = judge(Sample.of(rows, saturated=False), promise(), ("",), by_interval=False)
    assert found.verdict == "fails"
    assert found.goodput_fraction == pytest.approx(0.8)


def test_goodput_is_a_share_of_requests() -> None:
    rows = [(0.1, 0.02, 5.0, 0)] * 95 + [(0.6, 0.02, 5.0, 0)] * 5
    sample = Sample.of(rows, saturated=False)
    for target, verdict in ((0.94, "holds"), (0.96, "fails")):
        aims = Promise(promise(percentile=90).limits, goodput_fraction=target)
        assert judge(sample, aims, ("",), by_interval=False).verdict == verdict


# What is kept


def test_points_are_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    files = PointFiles(tmp_path, "v")
    sample = Sample.of([(0.1, None, 5.0, 1), (0.2, 0.02, math.inf, 0)], saturated=True)
    assert files.get("a") is None
    files.put("a", sample)
    assert files.get("a") == sample
    (tmp_path / "v" / "a").write_bytes(sample.encoded()[:-1])
    assert files.get("a") is None
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["a"]
    PointFiles(tmp_path / "v" / "a", "v").put("a", sample)  # cannot be written: no error


def test_an_answer_does_not_depend_on_what_is_kept(points: PointFiles, tmp_path: Path) -> None:
    fresh = PointFiles(tmp_path, "fresh")
    assert num_replicas(50.0, promise(), points) == num_replicas(50.0, promise(), fresh)
    aims = promise()
    first, again = (
        search_of(aims, 50.0, fresh).curve(candidate(aims)).sustained(4) for _ in range(2)
    )
    assert first == again


@pytest.mark.parametrize("traffic", ["constant", "conversations", "bursts", "too long"])
@pytest.mark.parametrize("group", [1, 3])
def test_a_point_that_goes_on_is_the_longer_run(traffic: str, group: int) -> None:
    """An early look changes nothing, and sees requests as others come after them."""
    specs: dict[str, dict[str, object]] = {
        "constant": {},
        "conversations": {"chat": {"turns": 3, "think_time": "2s"}},
        "bursts": {"arrivals": "burst:40"},
        "too long": {"prompt": "lognormal:100000,2"},  # some are longer than the model takes
    }
    demand = Demand(TrafficSpec.model_validate({"rate": "30", **specs[traffic]}))
    probe = replace(Search(demand, promise()).curve(candidate(promise())).probe, num_samples=200)
    short = probe.sample(1140, group, longer=False)
    long = probe.sample(1140, group, longer=True)
    assert long == replace(probe, _last={}).sample(1140, group, longer=True)
    assert len(long.ttft) > len(short.ttft)
    if traffic != "conversations":  # of which each look is a run of its own
        assert long.ttft[: len(short.ttft)] == short.ttft
        assert long.e2e[: len(short.ttft)] == short.e2e


def test_many_things_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_num_processors", lambda: 3)
    assert parallel.run_all(lambda n: "x" * n, range(70_000, 70_005)) == [
        "x" * n for n in range(70_000, 70_005)
    ]

    def odd(number: int) -> int:
        if number % 2:
            raise CapplanError(f"{number} is odd", hint="even ones")
        return number

    with pytest.raises(CapplanError, match="3 is odd") as raised:
        parallel.run_all(odd, [2, 3, 4, 5])
    assert raised.value.hint == "even ones"


# The proof


def test_the_fleet_is_proved_whole(points: PointFiles) -> None:
    aims = promise()
    question = search_of(aims, 60.0, points)
    one = candidate(aims, 60.0)
    found = replicas_for(question.curve(one), 60.0)
    assert found is not None
    proof = prove(one, found[0], question)
    assert proof.holds
    assert proof.num_added == 0
    assert proof.loss is not None
    assert proof.loss.num_failed == 0
    assert proof.loss.num_sent_again > 0
    assert proof.saturates_at_per_s > 60.0


def test_a_fleet_that_is_too_small_is_enlarged(points: PointFiles) -> None:
    aims = promise()
    question = search_of(aims, 60.0, points)
    proof = prove(candidate(aims, 60.0), 2, question)
    assert proof.holds
    assert proof.num_added == proof.num_replicas - 2 > 0


# The command


def answer(line: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 100, is_terminal=False, colour=False)
    return run(line.split(), env), out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--slo-e2e 1s --slo-ttft 400ms --slo-tpot 25ms", "contradicts the other limits"),
        ("--slo-percentile 100", "is not a percentile from 1 to 99.99"),
        ("--slo-ttft p0:400ms", "is not a percentile"),
        ("--slo-ttft p95:400", "400"),
        ("--objective money", "is not an objective"),
        ("--engine nim", "nim"),
        ("--arrivals poison", "is not a pattern of arrivals"),
        ("--arrivals burst", "all come at once"),
        ("--arrivals poisson --no-verify", "says nothing beside --no-verify"),
        ("--seed 1 --replica-tokens-per-s 2500", "says nothing beside --replica-tokens-per-s"),
        ("--prompt-tokens lognormal:1024", "lognormal"),
        ("--hardware gaudi2 --objective cost --commitment spot", "no spot price"),
    ],
)
def test_bad_input_is_one_clear_message(line: str, says: str) -> None:
    code, out, err = answer(f"gpus {line}")
    assert code == 2
    assert not out
    assert says in err
    assert err.startswith("error: ")
    assert "Traceback" not in err


def test_each_limit_may_have_its_percentile() -> None:
    code, out, _ = answer(
        "gpus --hardware h100-sxm-80gb --tp 1 --slo-ttft p90:400ms --slo-percentile 95 --json"
    )
    assert code == 0
    answered = json.loads(out)
    assert answered["inputs"]["slo_percentiles"] == {"ttft": 90, "tpot": 95}
    assert [level["percentile"] for level in answered["result"]["service_levels"]] == [90, 95]


def test_bursts_and_long_answers_leave_a_replica_less() -> None:
    line = "gpus --hardware h100-sxm-80gb --tp 1 --slo-percentile 90 --json"
    smooth, bursts, long = (
        json.loads(answer(line + more)[1])["result"]["sustained"]["requests_per_s"]
        for more in ("", " --arrivals gamma:3", " --output-tokens lognormal:512,1.0")
    )
    assert bursts <= smooth
    assert long < smooth


def test_several_values_are_searched() -> None:
    line = "gpus --hardware h100-sxm-80gb --tp 1,2 --dtype auto,fp8 --slo-percentile 95 --json"
    code, out, _ = answer(line)
    assert code == 0
    sizing = json.loads(out)["result"]["sizing"]
    looked_at = {(kind["tp"], kind["dtype"]) for kind in sizing["kinds"]}
    assert looked_at == {(1, "bf16"), (2, "bf16"), (1, "fp8"), (2, "fp8")}
    best = sizing["kinds"][0]
    assert best["dtype"] == "fp8"  # half of the bytes, twice the peak
    costs = [trade["usd_per_hour"] for trade in sizing["trade_offs"]]
    waits = [trade["e2e_s"] for trade in sizing["trade_offs"]]
    assert costs == sorted(costs)
    assert waits == sorted(waits, reverse=True)


def test_growth_and_variations_never_run_backwards() -> None:
    code, out, _ = answer(
        "gpus --hardware h100-sxm-80gb --tp 1 --slo-percentile 95 --growth 25%/month --horizon 1y "
        "--json"
    )
    assert code == 0
    result = json.loads(out)["result"]
    months = result["sizing"]["months"]
    assert len(months) == 13
    assert months[0]["num_gpus"] == result["num_gpus"]
    counts = [month["num_gpus"] for month in months]
    assert counts == sorted(counts)
    assert months[12]["arrival_rate_per_s"] == pytest.approx(100 * 1.25**12)
    less, more, pessimistic, optimistic = (v["num_gpus"] for v in result["sizing"]["variations"])
    assert less <= result["num_gpus"] <= more
    assert pessimistic <= optimistic
    band = result["sizing"]["model_band"]
    carried = result["sustained"]["requests_per_s"] * band["low_ratio"]
    assert optimistic == math.ceil(100 / carried)


def test_an_infeasible_question_names_the_limit_to_move() -> None:
    code, out, _ = answer("gpus --hardware h100-sxm-80gb --tp 8 --slo-tpot 1ms --json")
    assert code == 1
    result = json.loads(out)["result"]
    assert result["num_gpus"] is None
    (suggestion,) = result["suggestions"]
    assert suggestion["option"] == "--slo-tpot"
    moved = suggestion["value"].replace(" ", "")
    line = f"gpus --hardware h100-sxm-80gb --tp 8 --slo-tpot {moved} --qps 0.5 --json"
    assert answer(line)[0] == 0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--growth 20", "write it like `20%/month`"),
        ("--growth 20%/week", "is not understood"),
        ("--horizon 6mo", "says nothing without --growth"),
        ("--growth 20%/month --horizon forever", "write it like `6mo`"),
        ("--expert-parallel maybe", "none of on, off, auto"),
        ("--tp 1,,2", "empty value"),
        ("--max-num-seqs 0,8", "is not a whole number"),
        ("--dtype fp8,fp9", "is not a number format"),
    ],
)
def test_bad_searches_are_refused(line: str, says: str) -> None:
    code, out, err = answer(f"gpus {line}")
    assert (code, out) == (2, "")
    assert says in err


# Plans, traces, spares


def test_a_plan_is_sized_as_it_stands() -> None:
    """Shared prompts are found in the prefix cache: without it a replica sustains less."""
    line = "gpus --plan capplan/examples/rag.yaml --tp 1 --slo-percentile 95 --json"
    with contextlib.chdir(ROOT):
        code, out, _ = answer(line)
        without = json.loads(answer(f"{line} --no-enable-prefix-caching")[1])
    assert code == 0
    found = json.loads(out)
    assert found["inputs"]["slo_ttft_s"] == 1.0
    assert found["inputs"]["arrival_rate_per_s"] == 4
    sustained = found["result"]["sustained"]["requests_per_s"]
    assert sustained > without["result"]["sustained"]["requests_per_s"] * 1.2


def test_a_trace_is_sized_for_its_busiest_minutes(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    rows = [f"{i * 10},500,50" for i in range(100)] + [f"{2000 + i},500,50" for i in range(300)]
    file.write_text("\n".join(["timestamp,prompt_tokens,output_tokens", *rows]) + "\n")
    code, out, err = answer(f"gpus --hardware h100-sxm-80gb --tp 1 --trace {file} --json")
    assert code == 0, err
    inputs = json.loads(out)["inputs"]
    assert inputs["arrival_rate_per_s"] == pytest.approx(1.0, rel=0.01)
    assert (inputs["prompt_tokens"], inputs["output_tokens"]) == (500, 50)
    file.write_text("timestamp,prompt_tokens,output_tokens\n")
    code, _, err = answer(f"gpus --trace {file}")
    assert code == 2
    assert "holds no request" in err


def test_spares_follow_from_a_target() -> None:
    line = "gpus --hardware h100-sxm-80gb --tp 1 --slo-percentile 95 --mtbf 100h --mttr 1h --json"
    spares = []
    for target in ("90%", "99.9%", "99.9999%"):
        result = json.loads(answer(f"{line} --availability {target}")[1])["result"]
        found = result["sizing"]["availability"]
        assert found["fleet_fraction"] >= found["target_fraction"]
        assert result["num_spare_replicas"] == found["num_spares"]
        spares.append(found["num_spares"])
    assert spares == sorted(spares)
    assert spares[0] < spares[-1]


def test_classes_have_promises_of_their_own() -> None:
    with contextlib.chdir(ROOT):
        code, out, _ = answer("gpus --plan docs/examples/shared-fleet.yaml --tp 1 --json")
    assert code == 0
    levels = json.loads(out)["result"]["service_levels"]
    assert [(level["name"], level["kind"], level["percentile"]) for level in levels] == [
        ("TTFT", "chat", 99), ("TPOT", "chat", 99), ("TTFT", "summaries", 95),
        ("E2E", "summaries", 95),
    ]  # fmt: skip
    assert all(level["predicted_s"] <= level["limit_s"] for level in levels)


def test_a_simplified_scheduler_is_said() -> None:
    """Windows and states are searched as one pool; a reader must see it."""
    for model, simplified in (("gpt-oss-20b", True), ("llama-3.1-8b", False)):
        line = f"gpus --model {model} --hardware h100-sxm-80gb --tp 1 --slo-percentile 90 --qps 5"
        code, out, _ = answer(f"{line} --json")
        assert code == 0
        found = json.loads(out)
        said = any("simplified" in each["what"] for each in found["assumptions"])
        assert found["result"]["served_as"]["one_pool"] is said is simplified


def test_bursts_are_simulated_several_at_a_time() -> None:
    # 94 at once, every 30 s, among 8 a second: one burst alone looked like a queue without end.
    code, out, _ = answer("gpus --plan capplan/examples/incident.yaml --json")
    assert code == 0
    proof = json.loads(out)["result"]["sizing"]["proof"]
    assert proof["num_requests"] >= 10 * 94 * (8 + 188 / 60) / (188 / 60)
    assert proof["loss"]["holds"]
    assert not proof["loss"]["falls_behind"]


def test_a_limit_of_one_class_inside_its_band_is_said(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "model: llama-3.1-8b\nhardware: h100-sxm-80gb\ndeployment: {tp: 1}\ntraffic:\n  classes:\n"
        "    - {name: chat, rate: 20/s, prompt: 500, output: 200, slos: {ttft: 150ms}}\n"
        "    - {name: papers, rate: 2/s, prompt: 4000, output: 200}\n"
    )
    _, out, _ = answer(f"gpus --plan {plan} --json")
    (band,) = [b for b in json.loads(out)["result"]["bands"] if b["statistic"] == "P99 of chat"]
    assert band["low"] <= 0.15 <= band["high"]
    assert "limit of 150 ms lies inside" in answer(f"gpus --plan {plan} --format table")[1]


def test_points_of_one_percentile_are_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At this load the short runs of both are equally long, and what follows them is not.
    other = "gpus --hardware h100-sxm-80gb --tp 1 --qps 200 --json"
    asked = f"{other} --slo-ttft 120ms --slo-percentile 90"
    found = []
    for folder, lines in (("warm", (other, asked)), ("cold", (asked,))):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
        found.append([answer(line)[1] for line in lines][-1])
    assert found[0] == found[1]
