"""The proof's traffic: a curve begun later, a trace's busiest minutes, and what is said of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from commands import run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.planner.sizing.course import LEAD_S, Recorded, busiest_moment, curved
from capplan.planner.sizing.demand import Demand
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.curves import Piece, RateCurve, curve_of
from capplan.specs.traffic import TrafficSpec

PIECES = st.lists(
    st.builds(Piece, st.floats(1, 100), st.floats(0.1, 10), st.floats(0.1, 10)),
    min_size=1,
    max_size=5,
).map(tuple)


@given(PIECES, st.sampled_from(["hold", "repeat"]), st.floats(0, 300))
def test_a_curve_begun_later_gives_the_times_that_are_left(
    pieces: tuple[Piece, ...], then: str, from_s: float
) -> None:
    """Lambda of the later clock is Lambda less what had been due by then."""
    curve = RateCurve(pieces, then)  # type: ignore[arg-type]
    passed = curve.mean_over(None, from_s) * from_s if from_s else 0.0
    counts = [0.5, 3.0, 40.0]
    (whole,) = curve.times([[passed + count for count in counts]])
    (later,) = curve.begun(from_s).times([counts])
    assert later == pytest.approx([at - from_s for at in whole], abs=1e-6, rel=1e-6)


def spec_of(**traffic: object) -> TrafficSpec:
    return TrafficSpec.model_validate(traffic)


def test_a_day_is_proved_around_its_peak() -> None:
    day = {"kind": "diurnal", "mean": "1/s", "peak_factor": 3.0, "peak_at": "15h"}
    spec = spec_of(rate=day)
    moment, rate = busiest_moment([curve_of(spec.rate)])  # type: ignore[arg-type]
    assert moment == pytest.approx(15 * 3600)
    assert rate == pytest.approx(3.0)
    course = curved(spec, Path(), 1000, 30.0)
    assert course is not None
    assert course.from_s == LEAD_S
    assert course.words.startswith("10.6 min of the curve, from 5.00 min before its peak on")
    arrivals = [request.arrival_s for request in course.traffic(0).requests()]
    # 3 a second near the peak; the chance of being further off is 1 in 10,000.
    assert len(arrivals) == pytest.approx(3 * (300 + 1000 / 3), abs=4 * math.sqrt(1900))
    assert curved(spec_of(rate="3/s"), Path(), 1000, 30.0) is None


def test_a_peak_at_midnight_begins_the_day_before() -> None:
    day = {"kind": "diurnal", "mean": "1/s", "weights": [5, 1, 1, 1]}
    course = curved(spec_of(rate=day), Path(), 100, 30.0)
    assert course is not None
    early = sum(r.arrival_s < LEAD_S for r in course.traffic(0).requests())
    assert early == pytest.approx(LEAD_S * 0.5, rel=0.3)  # what came in the last quarter


def test_classes_that_peak_apart_are_said() -> None:
    def day(hour: int) -> dict[str, object]:
        return {"kind": "diurnal", "mean": "10/s", "peak_at": f"{hour}h"}

    together = [{"name": n, "rate": day(h)} for n, h in (("a", 9), ("b", 9))]
    apart = [{"name": n, "rate": day(h)} for n, h in (("a", 9), ("b", 21))]
    assert not Demand(spec_of(classes=together)).peaks_apart
    assert Demand(spec_of(classes=apart)).peaks_apart


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Ten minutes at one a second, five at four a second, and an hour of nearly nothing."""
    times = [*range(600), *(600 + i / 4 for i in range(1200)), *range(900, 4500, 60)]
    file = tmp_path / "trace.csv"
    rows = (f"{at},{700 if 600 <= at < 900 else 100},20" for at in times)
    file.write_text("\n".join(["timestamp,prompt_tokens,output_tokens", *rows]) + "\n")
    return file


def recorded_of(file: Path) -> Recorded:
    spec = spec_of(trace={"file": str(file)})
    return Recorded(spec, Path(), [r.arrival_s for r in requests_of(spec, 0).requests()])


def test_the_busiest_minutes_of_a_trace_are_replayed(trace: Path) -> None:
    recorded = recorded_of(trace)
    assert recorded.peak_per_s == pytest.approx(4.0, rel=0.01)
    course = recorded.course(recorded.peak_per_s, 1000, 30.0)
    assert course is not None
    assert course.from_s == pytest.approx(LEAD_S, abs=1)
    arrivals = [request.arrival_s for request in course.traffic(0).requests()]
    assert arrivals[:3] == [0, 1, 2]
    assert arrivals[-1] == pytest.approx(600, abs=2)
    # Lengths of the search are those of the busiest minutes too, at random times.
    held = Demand(spec_of(rate="4/s", trace={"file": str(trace)}), recorded=recorded)
    bodies = [r.prompt_tokens for r in held.traffic(1.0, 1000, 0).requests()]
    assert bodies[:900] == [700] * 900
    longer = held.with_lengths(prompt=1.5).traffic(1.0, 10, 0)
    assert next(longer.requests()).prompt_tokens == 1050


def test_twice_the_rate_is_the_trace_twice_as_fast(trace: Path) -> None:
    recorded = recorded_of(trace)
    plain, fast = (recorded.course(recorded.peak_per_s * f, 1000, 30.0) for f in (1, 2))
    assert plain is not None
    assert fast is not None
    slow_s, fast_s = ([r.arrival_s for r in c.traffic(0).requests()] for c in (plain, fast))
    assert fast_s == pytest.approx([at / 2 for at in slow_s])
    assert fast.words.endswith("2 times as fast")


def test_a_trace_too_short_for_its_percentile_is_held(trace: Path) -> None:
    assert recorded_of(trace).course(4.0, 10_000, 30.0) is None


def test_a_trace_with_a_window_is_sized_and_proved(trace: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "model: llama-3.1-8b\nhardware: h100-sxm-80gb\ndeployment: {tp: 1}\n"
        f"traffic:\n  trace: {{file: {trace}, start: 5min, end: 15min}}\n"
        "slos: {ttft: 400ms, tpot: 25ms}\n"
    )
    code, out = run_command(f"gpus --plan {plan} --json")
    assert code == 0, out
    found = json.loads(out)
    proof = found["result"]["sizing"]["proof"]
    assert proof["num_requests"] == 300 + 1200
    assert proof["num_measured"] == pytest.approx(1200, abs=4)
    assert "of the trace as recorded" in proof["course"]
    said = {each["what"]: each["value"] for each in found["assumptions"]}
    assert said["traffic of the proof"] == proof["course"]
    assert "held; arrivals Poisson" in said["traffic of the search"]
