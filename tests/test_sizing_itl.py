"""Limits on gaps between tokens are searched: samples keep histograms of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from commands import run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.planner.sizing.limits import ClassLimit, Promise
from capplan.planner.sizing.sample import NUM_SECTIONS, Sample, gaps_of, judge
from capplan.simulator.gap_sample import GapSample
from capplan.simulator.yardstick import Limit

GAPS = st.lists(
    st.tuples(st.floats(0, 100), st.floats(1e-3, 1.0), st.integers(1, 9)), min_size=20, max_size=99
)
FAST = "gpus --hardware h100-sxm-80gb --tp 1 --qps 20 --slo-percentile 90 --json"


def sample_of(gaps: list[tuple[float, float, int]]) -> tuple[GapSample, Sample]:
    watch = GapSample()
    for at_s, gap_s, num in sorted(gaps):
        watch.add(at_s, gap_s, 0.0, 1, num)
    rows = [(0.1, 0.02, 5.0, 0)]
    found = gaps_of([watch], 0.0, 100.0 + 1e-9)
    return watch, Sample.of(rows, saturated=False, gaps=found)


@given(GAPS, st.sampled_from([50.0, 90.0, 99.0]))
def test_a_percentile_of_gaps_is_that_of_the_list(
    gaps: list[tuple[float, float, int]], percentile: float
) -> None:
    """Buckets are 1.6 % wide; the sample names the upper end."""
    watch, sample = sample_of(gaps)
    assert len(sample.gaps) == NUM_SECTIONS
    promise = Promise((ClassLimit(Limit("itl", 1.0, percentile)),))
    level = judge(sample, promise, ("",), by_interval=False).levels[0]
    listed = sorted(gap for _, gap, num in gaps for _ in range(num))
    exact = listed[math.ceil(len(listed) * percentile / 100) - 1]
    assert watch.count == len(listed)
    assert level.value_s == pytest.approx(exact, rel=0.0165)
    assert Sample.decoded(sample.encoded()) == sample


def test_a_file_cut_short_is_not_read() -> None:
    _, sample = sample_of([(1.0 * i, 0.02, 3) for i in range(50)])
    with pytest.raises(ValueError, match="Expecting"):
        Sample.decoded(sample.encoded()[:-1])


def sustained(more: str) -> tuple[float, str]:
    code, out = run_command(f"{FAST} {more}")
    assert code == 0
    found = json.loads(out)["result"]["sustained"]
    return found["requests_per_s"], found["binding"]


def test_a_tighter_limit_on_gaps_never_sustains_more() -> None:
    (free, _), (loose, _), (tight, binding) = (
        sustained(more) for more in ("", "--slo-itl 60ms", "--slo-itl 20ms")
    )
    assert free >= loose >= tight
    assert tight < free
    assert binding == "itl"


def test_an_impossible_limit_on_gaps_names_the_one_to_move() -> None:
    code, out = run_command(f"{FAST} --slo-itl 1ms")
    assert code == 1
    (moved,) = json.loads(out)["result"]["suggestions"]
    assert moved["option"] == "--slo-itl"


def test_gaps_of_one_class_are_not_known(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "model: llama-3.1-8b\nhardware: h100-sxm-80gb\ntraffic:\n  classes:\n"
        "    - {name: chat, rate: 2/s, slos: {itl: 50ms}}\n"
    )
    code, _ = run_command(f"gpus --plan {plan}", refused=True)
    assert code == 2


def test_one_token_has_no_gap_to_promise() -> None:
    code, out = run_command("gpus --hardware h100-sxm-80gb --tp 1 --output-tokens 1 --json")
    assert code == 0
    levels = json.loads(out)["result"]["service_levels"]
    assert [level["name"] for level in levels] == ["TTFT"]
