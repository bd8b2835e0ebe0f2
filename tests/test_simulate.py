"""`capplan simulate` and `capplan pareto`: figures checked from outside, files, ends."""

from __future__ import annotations

import csv
import io
import json
import random
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from commands import run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.cli import simulate as command
from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.formulas.knee import frontier, knee
from capplan.formulas.statistics import (
    percentile_of,
    samples_needed,
    section_half_width,
    warmup_batches,
)
from capplan.simulator.gap_sample import GapSample
from capplan.simulator.requests import RequestRecord
from capplan.simulator.run_data import RunData
from capplan.simulator.saturation import saturation
from capplan.simulator.step_statistics import StepStatistics

QUICK = "simulate --hardware h100-sxm-80gb --qps 6 --num-requests 1200"


def document(line: str) -> dict[str, Any]:
    _, text = run_command(f"{line} --json")
    found: dict[str, Any] = json.loads(text)["result"]
    return found


def at(result: dict[str, Any], key: str, percentile: float) -> float | None:
    latency = next(latency for latency in result["latencies"] if latency["key"] == key)
    found: float | None = next(
        p["value_s"] for p in latency["percentiles"] if p["percentile"] == percentile
    )
    return found


# Arithmetic.

progressions = st.lists(
    st.tuples(
        st.floats(1e-4, 10),
        st.floats(0, 1e-3),
        st.integers(1, 40),
        st.integers(1, 20),
    ),
    min_size=1,
    max_size=30,
)


@given(progressions)
def test_gaps_as_if_listed(entries: list[tuple[float, float, int, int]]) -> None:
    sample, listed = GapSample(), list[float]()
    for first, more, steps, weight in entries:
        sample.add(0.0, first, more, steps, weight)
        listed += [first + more * k for k in range(steps) for _ in range(weight)]
    listed.sort()
    assert sample.count == len(listed)
    assert sample.max_s == pytest.approx(listed[-1])
    assert sample.mean_s == pytest.approx(sum(listed) / len(listed))
    wanted = (0.0, 12.5, 50.0, 90.0, 99.0)
    for percentile, found in zip(wanted, sample.percentiles(wanted), strict=True):
        assert found == pytest.approx(percentile_of(listed, percentile), rel=1e-12)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=200))
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    values.sort()
    for number, expected in enumerate(quantiles(values, n=100, method="inclusive"), 1):
        assert percentile_of(values, number) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_ten_lie_beyond() -> None:
    assert [samples_needed(p) for p in (50, 90, 95, 99, 99.9)] == [20, 100, 200, 1000, 10_000]


def test_intervals_cover() -> None:
    """Nine in ten intervals and more hold the mean that the samples were drawn around."""
    rng, held = random.Random(7), 0
    for _ in range(300):
        sections = [rng.gauss(5.0, 1.0) for _ in range(10)]
        overall = sum(sections) / len(sections)
        held += abs(overall - 5.0) <= section_half_width(overall, sections)
    assert 270 <= held <= 299


def test_a_transient_is_cut() -> None:
    rng = random.Random(1)
    settled = [rng.gauss(1.0, 0.1) for _ in range(200)]
    assert warmup_batches(settled) < 20
    falling = [5.0 - 0.1 * i for i in range(40)]
    assert 35 <= warmup_batches(falling + settled) <= 45


def test_knee_of_a_bent_curve() -> None:
    assert knee([(float(x), x / (1.0 - x)) for x in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)]) == 4
    assert knee([(1.0, 10.0), (2.0, 100.0), (3.0, 1000.0)]) is None  # straight
    assert frontier([(3.0, 1.0), (2.0, 2.0), (1.0, 0.5)]) == [2, 0]


# Saturation: a queue of one server, served in a fixed time.


def queue(load: float, seed: int, count: int = 2000) -> RunData:
    """Poisson arrivals, one at a time for one second each."""
    rng, now, free = random.Random(seed), 0.0, 0.0
    records = []
    for number in range(count):
        now += rng.expovariate(load)
        start = max(now, free)
        free = start + 1.0
        records.append(RequestRecord(str(number), now, start, start + 0.5, free, 10, 2, 0, 0, ()))
    return RunData(
        records=records,
        arrivals=[record.arrival_s for record in records],
        ends=[record.finish_s for record in records],
        statistics=[StepStatistics()],
        num_replicas=1,
        end="finished",
    )


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
def test_a_stable_queue_is_not_saturated(load: float) -> None:
    runs = [queue(load, seed) for seed in range(40)]
    alarms = sum(saturation(r, window_s=(0.0, r.last_arrival_s)).saturated for r in runs)
    assert alarms <= 1


@pytest.mark.parametrize("load", [1.2, 1.5, 3.0])
def test_an_overload_is_said(load: float) -> None:
    runs = [queue(load, seed) for seed in range(40)]
    assert all(saturation(r, window_s=(0.0, r.last_arrival_s)).saturated for r in runs)


# The command.


def test_figures_follow_from_the_records(tmp_path: Path) -> None:
    """Percentiles, counts and goodput once more, from the file with one line a request."""
    path = tmp_path / "requests.csv"
    out, err = io.StringIO(), io.StringIO()
    line = f"{QUICK} --warmup 10s --slo-ttft 80ms --slo-tpot 9ms --json --records {path}"
    run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
    assert "wrote" in err.getvalue()
    result = json.loads(out.getvalue())["result"]
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == result["num_requests"] == 1200
    counted = [row for row in rows if float(row["arrival_s"]) >= 10]
    assert {row["measured"] for row in counted} == {"true"}
    assert len(counted) == result["num_measured"]
    for key in ("ttft", "tpot", "e2e", "queue"):
        values = sorted(float(row[f"{key}_s"]) for row in counted)
        assert at(result, key, 99) == pytest.approx(percentile_of(values, 99), rel=1e-9)
    good = sum(float(r["ttft_s"]) <= 0.08 and float(r["tpot_s"]) <= 0.009 for r in counted)
    assert result["goodput"]["met_fraction"] == pytest.approx(good / len(counted))
    gaps = next(x for x in result["latencies"] if x["key"] == "itl")["num_samples"]
    assert gaps == pytest.approx(255 * len(counted), rel=0.01)


def test_same_seed_same_bytes() -> None:
    assert run_command(QUICK) == run_command(QUICK)
    assert run_command(QUICK) != run_command(f"{QUICK} --seed 1")


def test_exit_codes() -> None:
    assert run_command(QUICK)[0] == 0
    assert run_command(f"{QUICK} --slo-ttft 1ms")[0] == 1
    code, text = run_command("simulate --qps 2 --num-requests 100", width=80)
    assert code == 1
    assert "? open" in text
    assert "needs 1,000" in text


def test_saturation_prints_no_percentiles() -> None:
    result = document("simulate --qps 60 --num-requests 800")
    assert result["verdict"] == "saturated"
    assert result["latencies"] == []
    assert result["drain_s"] > 10
    assert result["saturation"]["served_per_s"] < 0.9 * result["saturation"]["offered_per_s"]


@pytest.mark.parametrize("load", ["--qps 200 --num-requests 200", "--qps 4 --num-requests 3"])
def test_arrivals_that_end_before_anybody_is_answered_are_counted_whole(load: str) -> None:
    """Up to the last arrival nothing was served: that is no rate of the server."""
    found = document(f"simulate {load} --hardware h100")
    num = found["num_answered"]
    assert num == found["num_measured"] == found["num_requests"]
    assert found["requests_per_s"] == pytest.approx(num / found["window_s"])
    assert found["output_tokens_per_s"] == pytest.approx(256 * found["requests_per_s"], rel=0.01)
    assert 0 < found["saturation"]["served_per_s"] < found["saturation"]["offered_per_s"]


def test_replications_are_pooled() -> None:
    one, three = document(QUICK), document(f"{QUICK} --replications 3")
    assert three["num_requests"] == 3 * one["num_requests"]
    assert three["interval"] == "3 replications"
    assert at(three, "ttft", 50) == pytest.approx(at(one, "ttft", 50), rel=0.1)


def test_too_long_requests_are_refused() -> None:
    result = document(f"{QUICK} --prompt-tokens 2000 --max-model-len 1500")
    assert result["verdict"] == "no-requests"
    assert [(item["end"], item["count"]) for item in result["unanswered"]] == [("refused", 1200)]
    assert "max_model_len is 1500" in result["unanswered"][0]["why"]


def test_replicas_share_the_load() -> None:
    one = document(QUICK)
    two = document(QUICK.replace("--qps 6", "--qps 12 --replicas 2"))
    assert two["num_gpus"] == 2
    assert at(two, "tpot", 50) == pytest.approx(at(one, "tpot", 50), rel=0.1)


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C: what is known so far, and 130."""

    class Impatient(command.Progress):
        def __call__(self, done: int, of: int | None) -> None:
            if done >= 512 and of:
                raise KeyboardInterrupt

    monkeypatch.setattr(command, "Progress", Impatient)
    code, text = run_command(f"{QUICK} --json")
    assert code == 130
    result = json.loads(text)["result"]
    assert result["verdict"] == "interrupted"
    assert 500 <= result["num_answered"] <= 520


def test_timeline(tmp_path: Path) -> None:
    """Slices of one replica do not overlap; every phase that begins ends."""
    path = tmp_path / "run.json"
    out, err = io.StringIO(), io.StringIO()
    line = f"{QUICK} --timeline {path}"
    run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    steps = [(e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert steps == sorted(steps)
    assert all(a + d <= b + 1 for (a, d), (b, _) in pairwise(steps))
    begun = [(e["id"], e["name"]) for e in events if e["ph"] == "b"]
    ended = [(e["id"], e["name"]) for e in events if e["ph"] == "e"]
    assert sorted(begun) == sorted(ended)
    assert {e["name"] for e in events if e["ph"] == "C"} == {"requests", "KV blocks"}


def test_plot(tmp_path: Path) -> None:
    """The same picture, byte for byte."""
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in files:
        out, err = io.StringIO(), io.StringIO()
        line = f"{QUICK} --plot {path}"
        assert run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False)) == 0
    one, two = (path.read_bytes() for path in files)
    assert one == two
    assert one.startswith(b"<?xml")


def test_files_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "there.csv"
    path.write_text("mine", encoding="utf-8")
    for option in (f"--records {path}", f"--timeline {tmp_path / 'a.txt'}"):
        out, err = io.StringIO(), io.StringIO()
        line = f"{QUICK} {option}"
        code = run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
        assert code == 2
        assert err.getvalue().startswith("error: ")
    assert path.read_text(encoding="utf-8") == "mine"


def test_files_of_several_runs_are_refused(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    line = f"{QUICK} --compare-schedulers --records {tmp_path / 'a.csv'}"
    code = run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
    assert code == 2
    assert "--compare-schedulers makes several" in err.getvalue()


def test_state_over_time_agrees_with_the_requests(tmp_path: Path) -> None:
    """Mean running requests = sum of their times in service / time (Little), both ways."""
    path = tmp_path / "requests.csv"
    out, err = io.StringIO(), io.StringIO()
    line = f"{QUICK} --warmup 20s --json --records {path}"
    run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
    result = json.loads(out.getvalue())["result"]
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    first, last = 20.0, max(float(row["arrival_s"]) for row in rows)
    decoding = sum(
        max(0.0, min(last, float(r["finish_s"])) - max(first, float(r["first_token_s"])))
        for r in rows
    )
    usage = result["usage"]
    # Decodes a step are weighted by steps, time in service by seconds: steps differ a little.
    mean = usage["mean_batch"] * usage["num_steps"] * usage["mean_step_s"] / (last - first)
    assert mean == pytest.approx(decoding / (last - first), rel=0.1)
    tokens = result["output_tokens_per_s"] * (last - first)
    assert tokens == pytest.approx(256 * 6 * (last - first), rel=0.1)


def test_options_stand_in_for_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "model: llama-3.1-8b\nhardware: h100-sxm-80gb\n"
        "engine: {max_num_seqs: 32}\ntraffic: {rate: 2/s, requests: 50}\n"
        "slos: {ttft: 2 s, percentile: 50}\n",
        encoding="utf-8",
    )
    _, text = run_command(f"simulate --plan {path} --json")
    first = json.loads(text)["inputs"]
    assert (first["max_num_seqs"], first["arrival_rate_per_s"], first["num_requests"]) == (
        32,
        2,
        50,
    )
    _, text = run_command(f"simulate --plan {path} --max-num-seqs 8 --qps 3 --json")
    second = json.loads(text)["inputs"]
    assert (second["max_num_seqs"], second["arrival_rate_per_s"]) == (8, 3)
    assert second["num_requests"] == 50


@pytest.mark.parametrize(
    "option",
    [
        "--qps 0", "--qps fast", "--num-requests 0", "--num-requests 1e9", "--duration 5",
        "--seed x", "--replications 0", "--slo-percentile 100", "--slo-goodput 110%",
        "--prompt-tokens normal", "--arrivals gamma", "--replicas 0", "--users 0",
        "--think-time 2s", "--warmup soon", "--plan nowhere.yaml", "--tp 3", "--skip-bad-rows",
        "--engine-version 9.9", "--max-num-seqs 0", "--max-model-len 1000000",
    ],
)  # fmt: skip
def test_bad_options(option: str) -> None:
    """One clear message and 2."""
    for name in ("simulate", "pareto"):
        out, err = io.StringIO(), io.StringIO()
        line = f"{name} --model llama-3.1-8b --hardware l4 {option}"
        code = run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
        assert (code, out.getvalue()) == (2, ""), line
        assert err.getvalue().startswith("error: "), line
        assert "Traceback" not in err.getvalue()


# The sweep.


def test_pareto_uses_the_same_traffic() -> None:
    """A point of the sweep is the simulation of that value alone."""
    line = "--hardware h100-sxm-80gb --qps 6 --num-requests 1200"
    points = document(f"pareto {line} --values 16,64")["points"]
    for point in points:
        alone = document(f"simulate {line} --max-num-seqs {point['value']}")
        if alone["verdict"] != "saturated":
            assert point["ttft_s"] == at(alone, "ttft", 99)
        assert point["output_tokens_per_s"] == alone["output_tokens_per_s"]


def test_degrees_that_do_not_fit_are_left_out() -> None:
    """70B parameters in bf16 are more than one H100 holds."""
    line = "pareto --sweep tp --model llama-3.1-70b --hardware h100-sxm-80gb --users 4"
    points = document(f"{line} --num-requests 40 --prompt-tokens 64 --output-tokens 8")["points"]
    assert [point["value"] for point in points] == [2, 4, 8]
    assert [point["num_gpus"] for point in points] == [2, 4, 8]


def test_lengths_that_are_given_go_round_a_closed_loop() -> None:
    """Without a rate `capplan pareto` makes users of the traffic that the options describe."""
    line = "pareto --hardware h100-sxm-80gb --values 4,16 --num-requests 200 --output-tokens 64"
    short, long = (
        document(f"{line} --prompt-tokens {n}")["points"] for n in (256, "uniform:2k-4k")
    )
    assert all(a["requests_per_s"] > b["requests_per_s"] for a, b in zip(short, long, strict=True))


def test_pareto_plot(tmp_path: Path) -> None:
    path = tmp_path / "pareto.svg"
    out, err = io.StringIO(), io.StringIO()
    line = f"pareto --hardware h100-sxm-80gb --values 8,32,64 --num-requests 1200 --plot {path}"
    code = run(line.split(), Environment(out, err, 80, is_terminal=False, colour=False))
    assert code == 0
    assert path.read_text(encoding="utf-8").startswith("<?xml")
