"""Which band each printed figure takes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from commands import run_command

from capplan.performance.bands import BandKey, band_for
from capplan.planner.bands import gpus_band
from capplan.render.bands import durations, inside_note
from capplan.results.bands import BandedFigure, ErrorBand

HOPPER = "simulate --model llama-3.1-8b --hardware h100-sxm-80gb"


def answer(line: str) -> dict[str, Any]:
    _, text = run_command(f"{line} --json")
    found: dict[str, Any] = json.loads(text)
    result: dict[str, Any] = found["result"]
    return result


def bands_of(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(band["figure"], band["statistic"]): band for band in result["bands"]}


def test_every_latency_has_the_band_of_its_kind() -> None:
    result = answer(f"{HOPPER} --qps 4 --num-requests 1500")
    bands = bands_of(result)
    key = BandKey("hopper", "vllm-v1", experts=False, several_gpus=False, loaded=False)
    for latency in result["latencies"]:
        named = [("mean", latency["mean_s"])]
        named += [(f"P{p['percentile']:g}", p["value_s"]) for p in latency["percentiles"]]
        for statistic, value in named:
            if value is None:
                continue
            band = bands[latency["key"], statistic]
            assert band["value"] == value
            assert band["low"] <= value <= band["high"]
    for figure, statistic, row in (
        ("tpot", "P99", "tpot"),
        ("itl", "mean", "tpot"),
        ("ttft", "P50", "ttft"),
        ("ttft", "P99", "ttft_p99"),
    ):
        expected = band_for(row, key)  # type: ignore[arg-type]
        found = bands[figure, statistic]
        assert found["low"] == pytest.approx(expected.low_ratio * found["value"])
        assert (found["rows"], found["cell"]) == (expected.num_rows, expected.like)


def test_an_answer_is_its_first_token_and_the_others() -> None:
    bands = bands_of(answer(f"{HOPPER} --qps 4 --num-requests 600"))
    e2e, ttft = bands["e2e", "mean"], bands["ttft", "mean"]
    tpot = bands["tpot", "mean"]["high"] / bands["tpot", "mean"]["value"]
    expected = ttft["high"] + (e2e["value"] - ttft["value"]) * tpot
    assert e2e["high"] == pytest.approx(expected)


def test_a_server_that_is_far_from_full_serves_what_is_offered() -> None:
    few = bands_of(answer(f"{HOPPER} --qps 1 --num-requests 300"))["output_tokens_per_s", "mean"]
    assert few["low"] == few["high"] == few["value"]
    near = bands_of(answer(f"{HOPPER} --qps 18 --num-requests 900"))["output_tokens_per_s", "mean"]
    assert near["low"] < near["value"] == near["high"]
    over = bands_of(answer(f"{HOPPER} --qps 40 --num-requests 900"))["output_tokens_per_s", "mean"]
    assert over["low"] < over["value"] < over["high"]
    assert "from 85% load" in over["cell"]


def test_what_was_never_measured_says_so() -> None:
    _, text = run_command("simulate --hardware gaudi3 --qps 2 --num-requests 300", width=80)
    assert "not measured: the" in " ".join(text.split())


def test_gpus_at_the_ends_of_the_throughput_band() -> None:
    key = BandKey("hopper", "vllm-v1", experts=False, several_gpus=False, loaded=True)
    band = band_for("throughput", key)
    found = gpus_band(20, 2, 100.0, 10.0, key)
    assert found.low == 2 * math.ceil(10 / band.high_ratio)
    assert found.high == 2 * math.ceil(10 / band.low_ratio)
    # Memory is needed however quick they are.
    assert gpus_band(20, 2, 100.0, 10.0, key, least_gpus=20).low == 20


BAND = BandedFigure.of(
    "tpot", "P99", 0.0241, ErrorBand("tpot", 0.8, 1.2, 0.8, 30, "any kind", True)
)


def test_a_limit_inside_the_band_is_told() -> None:
    note = inside_note(BAND, 0.025)
    assert note is not None
    assert note.startswith("TPOT P99 24.1 ms, 19 to 29 ms (80 %): the limit of 25.0 ms lies inside")
    assert inside_note(BAND, 0.030) is None


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.020, 0.0281, "20 to 28 ms"), (0.9, 1.23, "900 ms to 1.2 s")],
)
def test_a_band_as_people_read_it(low: float, high: float, shown: str) -> None:
    assert durations(low, high) == shown
