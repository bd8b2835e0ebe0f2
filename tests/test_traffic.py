"""Generated traffic: its distributions against closed forms, its order, its conversations."""

from __future__ import annotations

import contextlib
import json
import math
import re
import tracemalloc
from collections import Counter
from itertools import accumulate, islice, pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from capplan.errors import CapplanError, QuantityError
from capplan.formulas.limited_means import lognormal_limited_mean, normal_limited_mean
from capplan.simulator.requests import Request
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.curves import Piece, RateCurve, curve_of
from capplan.simulator.traffic.traffic import Traffic
from capplan.specs.documents import read_yaml
from capplan.specs.fields import Spec, validate
from capplan.specs.lengths import MAX_TOKENS, parse_lengths
from capplan.specs.randomness import parse_arrivals, parse_pauses
from capplan.specs.rates import Diurnal
from capplan.specs.traffic import TrafficSpec

N = 20_000
RATES = Path(__file__).parent / "data" / "traces" / "rates.csv"


def traffic(seed: int = 1, **fields: Any) -> Traffic:
    return requests_of(TrafficSpec(**fields), seed)


def requests(number: int = N, **fields: Any) -> list[Request]:
    return list(traffic(requests=number, **fields).requests())


def gaps(made: list[Request]) -> list[float]:
    return [later.arrival_s - before.arrival_s for before, later in pairwise(made)]


def cv(values: list[float]) -> float:
    return pstdev(values) / fmean(values)


# Arrivals


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() -> None:
    found = gaps(requests(rate="50/s"))
    assert fmean(found) == pytest.approx(1 / 50, rel=4 / math.sqrt(N))
    assert cv(found) == pytest.approx(1, abs=4 * math.sqrt(2 / N))  # sd of a sample's CV, cv = 1
    # Memoryless: the share of gaps above their mean is exp(-1).
    above = sum(gap > 1 / 50 for gap in found) / len(found)
    assert above == pytest.approx(math.exp(-1), abs=4 * math.sqrt(0.233 / N))


@pytest.mark.parametrize("wanted", [0.3, 1.0, 2.5])
def test_gamma_gaps_have_the_cv_that_was_asked_for(wanted: float) -> None:
    found = gaps(requests(rate="10/s", arrivals=f"gamma:{wanted}"))
    assert fmean(found) == pytest.approx(0.1, rel=4 * wanted / math.sqrt(N))
    assert cv(found) == pytest.approx(wanted, rel=0.06)


def test_constant_gaps_and_bursts() -> None:
    constant = requests(5, rate="4/s", arrivals="constant")
    assert [r.arrival_s for r in constant] == [0.25, 0.5, 0.75, 1.0, 1.25]
    bursts = requests(6, rate="1/s", arrivals="burst:3")
    assert [r.arrival_s for r in bursts] == [3.0, 3.0, 3.0, 6.0, 6.0, 6.0]
    assert {r.arrival_s for r in requests(3000, arrivals="burst")} == {0.0}


def test_a_ramp_brings_what_the_area_under_it_says() -> None:
    made = requests(60_000, rate={"kind": "ramp", "start": "0", "end": "40/s", "over": "1000s"})
    for until_s in (250, 500, 1000):
        expected = 40 / 1000 * until_s**2 / 2
        found = sum(r.arrival_s <= until_s for r in made)
        assert found == pytest.approx(expected, abs=4 * math.sqrt(expected))
    later = [r for r in made if 1000 < r.arrival_s <= 1500]
    assert len(later) == pytest.approx(40 * 500, abs=4 * math.sqrt(40 * 500))


@pytest.mark.parametrize(
    ("fields", "mean"),
    [
        # 40/s after 1,000 s: 20,000 requests until then, 20,000 in the 500 s after it.
        ({"rate": {"kind": "ramp", "end": "40/s", "over": "1000s"}, "duration": "1500s"}, 80 / 3),
        ({"rate": {"kind": "ramp", "end": "40/s", "over": "1000s"}, "requests": 5000}, 10),
        ({"rate": {"kind": "steps", "rates": ["10/s", "30/s"], "each": "100s"}}, 20),
        ({"rate": {"kind": "steps", "rates": ["10/s", "30/s"], "each": "100s"},
          "duration": "150s"}, 2500 / 150),
        ({"rate": {"kind": "diurnal", "mean": "24/day", "weights": [1, 3]}, "duration": "12h"},
         12 / 86_400),
        ({"rate": "5/s", "peak_factor": 3.0, "requests": 77}, 15),
    ],
)  # fmt: skip
def test_the_rate_is_that_of_the_run(fields: dict[str, Any], mean: float) -> None:
    assert traffic(**fields).rate_per_s == pytest.approx(mean)


def test_steps_end_by_themselves_and_pass_over_a_pause() -> None:
    rates = ["10/s", "0", "30/s"]
    made = list(traffic(rate={"kind": "steps", "rates": rates, "each": "200s"}).requests())
    counts = Counter(int(r.arrival_s // 200) for r in made)
    assert set(counts) == {0, 2}
    assert counts[0] == pytest.approx(2000, abs=4 * math.sqrt(2000))
    assert counts[2] == pytest.approx(6000, abs=4 * math.sqrt(6000))


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0, 8.0])
def test_a_day_has_its_mean_its_peak_and_the_shape_of_von_mises(factor: float) -> None:
    day = curve_of(Diurnal(kind="diurnal", mean="5M/day", peak_factor=factor, peak_at="15h"))
    assert day.mean_per_s == pytest.approx(5e6 / 86_400, rel=1e-9)
    assert day.peak_per_s / day.mean_per_s == pytest.approx(factor, rel=1e-6)

    def over_mean(kappa: float) -> float:  # exp(kappa) / I0(kappa), by the series of I0
        i0 = math.fsum((kappa / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(70))
        return math.exp(kappa) / i0

    trough, peak = (min, max)
    ends = [piece.start_per_s for piece in day.pieces]
    kappa = math.log(peak(ends) / trough(ends)) / 2
    assert over_mean(kappa) == pytest.approx(factor, rel=1e-6)
    assert ends.index(peak(ends)) == 15 * 12  # five minutes each


def test_a_measured_day_may_begin_anywhere() -> None:
    weights = [0.0] * 23 + [2.0]
    spec = {"kind": "diurnal", "mean": "1/s", "weights": weights, "start_at": "22.5h"}
    made = list(traffic(rate=spec, duration="2d").requests())
    hours = Counter(int(r.arrival_s // 1800) for r in made)
    assert set(hours) == {1, 2, 49, 50}  # 23:00 to 24:00, in half hours after 22:30
    assert len(made) == pytest.approx(2 * 86_400, abs=4 * math.sqrt(2 * 86_400))


def test_a_curve_stretches_the_gaps_of_every_pattern() -> None:
    """Counted on the clock that runs with the rate, the gaps of a ramp are those of rate 1."""
    rate = {"kind": "ramp", "start": "5/s", "end": "50/s", "over": "300s"}
    made = requests(8000, rate=rate, arrivals="gamma:2.0")

    def area(t: float) -> float:
        return 5 * t + 45 / 300 * t * t / 2

    counted = [area(r.arrival_s) for r in made if r.arrival_s < 300]
    found = [after - before for before, after in pairwise(counted)]
    assert fmean(found) == pytest.approx(1, rel=4 * 2 / math.sqrt(len(found)))
    assert cv(found) == pytest.approx(2, rel=0.08)


@given(
    st.lists(
        st.tuples(st.floats(0.1, 1e4), st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=5
    ),
    st.lists(st.floats(1e-6, 50), min_size=1, max_size=30),
    st.sampled_from(["repeat", "stop"]),
)
def test_times_invert_the_integral_of_the_rate(
    parts: list[tuple[float, float, float]], steps: list[float], then: Any
) -> None:
    curve = RateCurve(tuple(Piece(*part) for part in parts), then)
    total = sum(piece.num_requests for piece in curve.pieces)
    if total < 1e-3:
        return
    counts = list(accumulate(steps))
    times = [t for batch in curve.times([counts]) for t in batch]
    assert times == sorted(times)
    assert len(times) == len(counts) or then == "stop"
    assert all(count >= total * (1 - 1e-9) for count in counts[len(times) :])

    def area(until_s: float) -> float:
        area = math.floor(until_s / curve.length_s) * total
        left = until_s % curve.length_s
        for piece in curve.pieces:
            t = min(left, piece.length_s)
            slope = (piece.end_per_s - piece.start_per_s) / piece.length_s
            area += piece.start_per_s * t + slope * t * t / 2
            left -= t
        return area

    for count, time_s in zip(counts, times, strict=False):
        near = (area(time_s * (1 - 1e-9)), area(time_s * (1 + 1e-9) + 1e-9))
        assert near[0] - 1e-6 * count <= count <= near[1] + 1e-6 * count + 1e-9


def test_servegen_clients_have_their_rates_and_their_burstiness() -> None:
    rates = {"kind": "servegen", "file": str(RATES), "factor": 10.0}
    run = traffic(rate=rates)
    made = list(run.requests())
    assert run.rate_per_s == pytest.approx(10 * (2 + 4 + 1 + 1) * 600 / 1800)
    assert traffic(rate=rates, duration="600s").rate_per_s == pytest.approx(30)
    windows = Counter(int(r.arrival_s // 600) for r in made)
    # Variance of a count over a long time: CV^2 times its mean.
    assert windows[0] == pytest.approx(18_000, abs=4 * math.sqrt(12_000 + 5 * 6000))
    assert windows[1] == pytest.approx(6000, abs=4 * math.sqrt(6000))
    only = list(traffic(rate=rates | {"clients": ["a"], "start_at": "1200s"}).requests())
    found = gaps(only)
    assert fmean(found) == pytest.approx(1 / 40, rel=4 * 2 / math.sqrt(len(found)))
    assert cv(found) == pytest.approx(2, rel=0.06)


# Lengths


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("fixed:700", 700, 0),
        ("uniform:1-2048", 1024.5, math.sqrt((2048**2 - 1) / 12)),
        ("range:1024,0.5", 1024, math.sqrt((1025**2 - 1) / 12)),
        ("normal:1024,100", 1024, 100),
        ("lognormal:1280,0.8", 1280, 0.8 * 1280),
        ("10,20,60", 30, math.sqrt((400 + 100 + 900) / 3)),
    ],
)
def test_lengths_have_their_mean_and_deviation(text: str, mean: float, deviation: float) -> None:
    run = traffic(requests=N, rate="1/s", prompt=text)
    found = [float(r.prompt_tokens) for r in run.requests()]
    assert fmean(found) == pytest.approx(mean, abs=4 * deviation / math.sqrt(N) + 0.1)
    assert pstdev(found) == pytest.approx(deviation, rel=0.06, abs=0.5)
    assert run.mean_prompt_tokens == pytest.approx(mean, rel=1e-9)


def test_the_range_is_that_of_the_engines_benchmark() -> None:
    """`--random-input-len 1000 --random-range-ratio 0.2`: floor and ceiling, both included."""
    found = {r.prompt_tokens for r in requests(prompt="range:1001,0.2", rate="1/s")}
    assert (min(found), max(found)) == (800, 1202)
    assert min(r.output_tokens for r in requests(output="range:2,1.0", rate="1/s")) == 1


@pytest.mark.parametrize("text", ["normal:100,80,1-250", "lognormal:500,1.5,64-1000"])
def test_a_cut_moves_the_mean_as_the_limited_means_say(text: str) -> None:
    lengths = parse_lengths(text)
    shares = [(i + 0.5) / 400_000 for i in range(400_000)]
    found = lengths.quantiles(shares)
    assert lengths.least <= min(found) <= max(found) <= lengths.most
    assert fmean(found) == pytest.approx(lengths.mean_tokens, abs=0.05)


def test_limited_means_at_known_points() -> None:
    # Half of a normal lies above its mean, by sigma / sqrt(2 pi) on average over all.
    assert normal_limited_mean(10, 2, 10) == pytest.approx(10 - 2 / math.sqrt(2 * math.pi))
    assert lognormal_limited_mean(50, 0.7, 1e12) == pytest.approx(50)
    assert lognormal_limited_mean(50, 0.7, 1e-9) == pytest.approx(1e-9)


def test_histograms_give_each_length_its_share(tmp_path: Path) -> None:
    path = tmp_path / "lengths.json"
    path.write_text('{"128": 1, "1024": 3, "9": 0}')
    run = traffic(requests=N, rate="1/s", output=f"@{path}")
    counts = Counter(r.output_tokens for r in run.requests())
    assert set(counts) == {128, 1024}
    assert counts[128] / N == pytest.approx(0.25, abs=4 * math.sqrt(0.1875 / N))
    assert run.mean_output_tokens == pytest.approx(800)


def test_servegen_lengths_are_a_histogram_over_all_windows(tmp_path: Path) -> None:
    path = tmp_path / "chunk-7-dataset.json"
    windows = {
        "0": {"output_tokens": "{10: 0.5, 20: 0.5}"},
        "21600": {"output_tokens": "{20: 1e0}"},
    }
    path.write_text(json.dumps(windows))
    run = traffic(requests=1, rate="1/s", output=f"@{path}:output_tokens")
    assert run.mean_output_tokens == pytest.approx(17.5)
    with pytest.raises(CapplanError, match="not a histogram"):
        traffic(rate="1/s", output=f"@{path}:input_tokens")


@given(st.sampled_from(["uniform:5-9", "normal:50,40", "lognormal:40,2", "3,1,2", "range:7,0.9"]))
def test_quantiles_rise_and_stay_within_bounds(text: str) -> None:
    found = parse_lengths(text).quantiles([i / 997 for i in range(997)])
    assert found == sorted(found)
    assert 1 <= found[0] <= found[-1] <= MAX_TOKENS


# Streams


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    fields: dict[str, Any] = {
        "rate": "20/s", "prompt": "lognormal:900,1.1", "output": "normal:200,50",
        "system_prompts": {"count": 5, "tokens": "uniform:100-900", "popularity": "zipf:1.2"},
    }  # fmt: skip
    run = traffic(seed=3, requests=3000, **fields)
    first, again = list(run.requests()), list(run.requests())
    assert first == again == list(traffic(seed=3, requests=3000, **fields).requests())
    assert first != list(traffic(seed=4, requests=3000, **fields).requests())


def test_another_rate_scales_the_arrivals_and_leaves_everything_else() -> None:
    slow, fast = (requests(3000, rate=rate, prompt="lognormal:900,1") for rate in ("8/s", "16/s"))
    assert [r.arrival_s for r in slow] == [2 * r.arrival_s for r in fast]
    assert [r[2:] for r in slow] == [r[2:] for r in fast]


def test_another_output_leaves_prompts_and_arrivals() -> None:
    one, other = (
        requests(3000, rate="8/s", prompt="normal:900,100", output=output)
        for output in ("fixed:1", "lognormal:300,2")
    )
    assert [r[:3] for r in one] == [r[:3] for r in other]


def test_classes_are_merged_in_order_with_their_own_numbers() -> None:
    chat = {"name": "chat", "rate": "9/s", "prompt": "normal:300,50"}
    papers = {"name": "papers", "rate": "1/s", "prompt": "8k", "priority": 2, "max_tokens": 100}
    run = traffic(requests=5000, classes=[chat, papers])
    made = list(run.requests())
    times = [r.arrival_s for r in made]
    assert times == sorted(times)
    share = sum(r.id.startswith("papers/") for r in made) / 5000
    assert share == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 5000))
    alone = [r for r in made if r.id.startswith("chat/")]
    assert alone == list(islice(traffic(classes=[chat]).requests(), len(alone)))
    assert {(r.priority, r.output_tokens) for r in made if r.prompt_tokens == 8000} == {(2, 100)}
    assert run.rate_per_s == pytest.approx(10)
    assert run.mean_prompt_tokens == pytest.approx(0.9 * 300 + 0.1 * 8000)


def test_a_stream_needs_no_memory() -> None:
    stream = traffic(requests=20_000, rate="99/s", prompt="lognormal:900,1").requests()
    next(stream)
    tracemalloc.start()
    for _ in stream:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_duration_ends_the_stream() -> None:
    made = list(traffic(rate="50/s", duration="100s").requests())
    assert made[-1].arrival_s < 100
    assert len(made) == pytest.approx(5000, abs=4 * math.sqrt(5000))


# Prefixes and conversations


def test_system_prompts_are_drawn_by_popularity_and_stand_before_the_prompt() -> None:
    prompts = {"count": 4, "tokens": "uniform:50-500", "popularity": "zipf:1.0", "share": 0.8}
    run = traffic(requests=N, rate="1/s", prompt="100", system_prompts=prompts)
    made = list(run.requests())
    counts = Counter(r.prefix[0][0] if r.prefix else "" for r in made)
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    for rank in range(4):
        share = 0.8 / (rank + 1) / harmonic
        assert counts[f"system {rank}"] / N == pytest.approx(share, abs=4 * math.sqrt(share / N))
    assert counts[""] / N == pytest.approx(0.2, abs=0.012)
    assert {r.prompt_tokens - sum(tokens for _, tokens in r.prefix) for r in made} == {100}
    assert len({r.prefix for r in made}) == 5  # each always of the same length
    assert fmean(r.prompt_tokens for r in made) == pytest.approx(run.mean_prompt_tokens, rel=0.02)


def test_a_conversation_grows_by_its_own_tokens_and_answers() -> None:
    chat = {"turns": "fixed:3", "think_time": "fixed:10s"}
    prompts = {"tokens": "100"}
    run = traffic(
        requests=3, rate="1/s", chat=chat, system_prompts=prompts, prompt="10", output="20"
    )
    first = next(run.requests())
    second = run.after(first, 50.0)
    assert second is not None
    third = run.after(second, 90.0)
    assert third is not None
    assert run.after(third, 120.0) is None
    assert [r.prompt_tokens for r in (first, second, third)] == [110, 140, 170]
    assert (second.arrival_s, third.arrival_s) == (60.0, 100.0)
    assert second.prefix == (*first.prefix, first.own_segment)
    assert third.prefix == (*second.prefix, second.own_segment)
    assert [r.reused for r in (first, second, third)] == [True, True, False]
    assert run.mean_prompt_tokens == pytest.approx((110 + 140 + 170) / 3)
    assert run.rate_per_s == pytest.approx(3)


def test_a_conversation_without_an_answer_ends() -> None:
    chat = {"turns": "fixed:3", "think_time": "fixed:10s"}
    run = traffic(requests=100, rate="1/s", chat=chat)
    first = next(run.requests())
    assert run.after(first, 50.0, failed=True) is None


def drive(run: Traffic, service_s: float) -> list[Request]:
    """Every request takes as long; follow-ups are put in where they belong."""
    done, under_way = [], list(run.requests())
    while under_way:
        under_way.sort(key=lambda r: r.arrival_s)
        request = under_way.pop(0)
        done.append(request)
        following = run.after(request, request.arrival_s + service_s)
        under_way += [following] if following else []
    return done


def test_a_closed_loop_keeps_its_users_and_its_number_of_requests() -> None:
    loop = {"users": 5, "think_time": "fixed:2s", "ramp_up": "5s"}
    run = traffic(requests=40, closed_loop=loop, prompt="normal:500,99")
    done = drive(run, service_s=3.0)
    assert run.closed_loop is not None
    assert run.closed_loop.num_users == 5
    assert [r.arrival_s for r in done[:6]] == [0, 1, 2, 3, 4, 5]
    assert len(done) == 40
    assert done[-1].arrival_s == 7 * 5 + 4
    assert run.rate_per_s is None
    # What is sent does not hang on when it is answered.
    other = drive(run, service_s=0.5)
    assert {r.id: r[2:] for r in done} == {r.id: r[2:] for r in other}


def test_users_of_a_closed_loop_hold_conversations() -> None:
    chat = {"turns": "uniform:1-4", "think_time": "exponential:5s"}
    run = traffic(requests=50, closed_loop={"users": 3}, chat=chat, prompt="10", output="5")
    done = drive(run, service_s=1.0)
    assert len(done) == 50
    turns = Counter(r.id.split(".")[0] for r in done)
    assert set(turns.values()) <= {1, 2, 3, 4}
    assert all(r.prompt_tokens == 10 + 15 * int(r.id.split(".")[1]) for r in done)


@pytest.mark.parametrize(
    ("pauses", "mean_s"),
    [("fixed:4s", 4), ("exponential:4s", 4), ("uniform:2s-6s", 4), ("lognormal:4s,0.5", 4)],
)
def test_think_times_have_their_mean(pauses: str, mean_s: float) -> None:
    run = traffic(requests=4001, closed_loop={"users": 1, "think_time": pauses})
    done = drive(run, service_s=0.0)
    assert done[-1].arrival_s / 4000 == pytest.approx(mean_s, rel=4 / math.sqrt(4000))


# What a plan may say


class Plan(Spec):
    traffic: TrafficSpec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate: abc", "`traffic.rate`: `abc` is not a rate"),
        ("rate: {kind: rampp}", "`traffic.rate.kind` should be one of"),
        ("rate: {kind: steps, rates: [0], each: 5s}", "`traffic.rate.rates` are all zero"),
        ("arrivals: pois", "`traffic.arrivals`: `pois` is not a pattern of arrivals"),
        ("arrivals: burst, rate: 3/s", "all at once have no `rate`"),
        ("prompt: 'lognormall:3,1'", "`traffic.prompt`: `lognormall` is not a distribution"),
        ("prompt: 'normal:9,3,80-20'", "`traffic.prompt`: the cut `80-20` runs backwards"),
        ("prompt: [1]", "`traffic.prompt`: a list is not understood"),
        ("output: 0", "`traffic.output`: `0` is zero"),
        ("seed: -1", "`traffic.seed` should be 0 or more"),
        ("duration: 5", "`traffic.duration`: `5` has no unit"),
        ("classes: [{rate: 3/s}, {name: b}]", "`traffic.classes[0].name` is missing"),
        ("classes: [{name: b}, {name: b}]", "`traffic.classes[1].name` `b` stands twice"),
        ("classes: [{name: b}], rate: 3/s", "`traffic.rate` stands beside `classes`"),
        ("closed_loop: {users: 4}, rate: 3/s", "and `closed_loop` exclude each other"),
        ("chat: {turns: 3, think_time: exp:3s}", "`exp` is not a distribution of pauses"),
        ("peak_factor: 2.0, rate: {kind: ramp, end: 3/s, over: 9s}", "belongs to a plain rate"),
        ("chat: {turns: 201, think_time: 3s}", "`traffic.chat.turns` are more than 200 turns"),
        ("system_prompts: {tokens: 9, popularity: zapf}", "popularity`: `zapf` is no popularity"),
        ("rate: {kind: servegen, file: a}, arrivals: poisson", "are those of ServeGen's clients"),
        ("trace: {file: a, start: 9s, end: 3s}", "`traffic.trace.end` is not after `start`"),
        ("trace: {file: a}, chat: {turns: 3, think_time: 3s}", "`traffic.chat` and `trace`"),
        ("trace: {file: a}, arrivals: gamma:2", "need a `rate` beside a trace"),
    ],
)
def test_faults_of_a_plan_have_a_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"traffic: {{{text}}}")
    with pytest.raises(CapplanError) as caught:
        validate(Plan, read_yaml(path))
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 1


@given(st.text("0123456789.,:-±%@ ksunifomralgpdcet", max_size=24))
def test_any_text_is_understood_or_refused(text: str) -> None:
    for parse in (parse_lengths, parse_arrivals, parse_pauses):
        for given_text in (text, f"lognormal:{text}", f"uniform:{text}", f"gamma:{text}"):
            with contextlib.suppress(QuantityError):
                parse(given_text)


def test_every_default_is_named_with_its_option() -> None:
    told = {found.option: found.value for found in traffic().describe()}
    assert told == {
        "--qps": "4 req/s",
        "--arrivals": "Poisson",
        "--prompt-tokens": "1,024 tokens",
        "--output-tokens": "256 tokens",
        "--requests": "10,000",
        "--seed": "0",
    }
    said = traffic(rate="1/s", arrivals="poisson", prompt=1, output=1, requests=1, peak_factor=2.0)
    assert [found.option for found in said.describe()] == ["--seed"]


def test_a_rate_out_of_range_is_refused_with_its_peak() -> None:
    with pytest.raises(ValidationError):
        TrafficSpec(rate="1M/s", peak_factor=24.0)


DOCS = Path(__file__).parents[1] / "docs" / "traffic.md"


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.S))
def test_the_documentation_shows_traffic_that_is_understood(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    spec = validate(Plan, read_yaml(path)).traffic
    if spec.trace is None:
        assert len(list(islice(requests_of(spec).requests(), 50))) == 50
