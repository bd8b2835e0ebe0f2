"""Every latency, throughput and GPU count that is printed carries its band, in every form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from commands import COMMANDS, Command, run_command

from capplan.performance.bands import BandKey, band_for
from capplan.planner.simulated_bands import as_quick
from capplan.render.band_columns import end_keys, with_ends
from capplan.render.band_shares import shares_note
from capplan.results.bands import BandedFigure, ErrorBand
from capplan.simulator.yardstick import Limit

PREDICTING = (
    "capplan.gpus/1", "capplan.simulate/1", "capplan.pareto/1", "capplan.schedulers/1",
    "capplan.simulate-variants/1",
)  # fmt: skip
commands = pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.schema in PREDICTING], ids=lambda command: command.name
)
FIGURE = re.compile(
    r"(attempt_)?(ttft|tpot|itl|e2e|queue|longest)_\w*s|"
    r"(output_tokens|requests|goodput)_per_s(_per_gpu)?|num_gpus\w*"
)
# How many GPUs are simulated is the question; memory does not depend on speed.
ASKED = {"num_gpus", "num_gpus_memory"}


def rows_of(text: str) -> list[dict[str, str]]:
    head, *rows = text.rstrip("\n").split("\n")
    return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]


@commands
def test_columns_for_programs_have_their_ends(command: Command) -> None:
    _, text = run_command(command.line)
    asked = ASKED if command.schema != "capplan.gpus/1" else {"num_gpus_memory"}
    for row in rows_of(text):
        figures = [
            key
            for key in row
            if FIGURE.fullmatch(key) and not re.search("_(low|high)(_|$)", key) and key not in asked
        ]
        assert figures
        for key in figures:
            low, high = (row[name] for name in end_keys(key))
            if row[key]:
                assert float(low) <= float(row[key]) * (1 + 1e-9), key
                assert float(row[key]) <= float(high) * (1 + 1e-9), key
            else:
                assert low == high == ""


def ranges(found: Any) -> Iterator[tuple[str, float, dict[str, float]]]:
    """(key, value, ends) of every band that stands beside its figure."""
    if isinstance(found, list):
        for item in found:
            yield from ranges(item)
    if not isinstance(found, dict):
        return
    for key, value in found.items():
        stem = key.removesuffix("_band")
        if key.endswith("_band") and isinstance(value, dict) and {"low", "high"} == value.keys():
            names = (stem, f"{stem}_s", f"{stem}_at_per_s")
            yield key, next(found[name] for name in names if name in found), value
        elif key == "band" and value is not None:
            yield key, found.get("value_s", found.get("requests_per_s")), value
        else:
            yield from ranges(value)


@pytest.mark.parametrize(
    "line",
    [
        "gpus --hardware h100-sxm-80gb,a100-sxm-80gb --growth 10%/month --sensitivity",
        "gpus --no-verify",
    ],
)
def test_bands_in_json_hold_what_they_stand_beside(line: str) -> None:
    result = json.loads(run_command(f"{line} --json")[1])["result"]
    found = list(ranges(result))
    assert len(found) > 5
    for key, value, ends in found:
        assert ends["low"] <= value <= ends["high"], key
    if result["sizing"] is None:
        return
    sizing = result["sizing"]
    best = sizing["kinds"][0]
    counted = next(band for band in result["bands"] if band["figure"] == "num_gpus")
    assert best["num_gpus_band"] == {"low": counted["low"], "high": counted["high"]}
    assert all(month["num_gpus_band"] for month in sizing["months"])
    assert sizing["months"][0]["num_gpus_band"] == best["num_gpus_band"]
    for variation in sizing["variations"]:
        banded = variation["num_gpus_band"] is not None
        assert banded is (variation["key"] != "model" and variation["num_gpus"] is not None)
    # The model's error is what the count's band is made of.
    worse = next(v for v in sizing["variations"] if "optimistic" in v["what"])
    assert worse["num_gpus"] == best["num_gpus_band"]["high"]


def test_bounds_at_the_ends_of_throughputs_band() -> None:
    """A replica that carries 1 / x as much needs x times as many, rounded up."""
    result = json.loads(run_command("gpus --no-verify --hardware h100 --tp 1 --json")[1])["result"]
    key = BandKey("hopper", "vllm-v1", experts=False, several_gpus=False, loaded=True)
    band, bounds = band_for("throughput", key), result["bounds"]
    made = result["replica"]["output_tokens_per_s"]
    need = 100 * 255
    assert bounds["num_gpus_decode_band"] == {
        "low": math.ceil(need / (made * band.high_ratio)),
        "high": math.ceil(need / (made * band.low_ratio)),
    }


def test_what_is_bought_is_whole_nodes_of_the_band() -> None:
    result = json.loads(run_command("gpus --no-verify --hardware h100 --json")[1])["result"]
    by_figure = {band["figure"]: band for band in result["bands"]}
    gpus, bought = by_figure["num_gpus"], by_figure["num_gpus_rounded"]
    for end in ("low", "value", "high"):
        replicas = gpus[end] / result["tp"] + result["num_spare_replicas"]
        assert bought[end] == math.ceil(replicas * result["tp"] / 8) * 8


def test_a_slow_server_sees_tighter_limits() -> None:
    key = BandKey("hopper", "vllm-v1", experts=False, several_gpus=False, loaded=False)
    limits = (Limit("ttft", 0.4, 99.0), Limit("tpot", 0.025, 99.0), Limit("e2e", 10.0, 99.0))
    slow, quick = as_quick(limits, key)
    tpot = band_for("tpot", key)
    assert slow[1].limit_s == pytest.approx(0.025 / tpot.high_ratio)
    assert quick[1].limit_s == pytest.approx(0.025 / tpot.low_ratio)
    for tight, limit, loose in zip(slow, limits, quick, strict=True):
        assert tight.limit_s <= limit.limit_s <= loose.limit_s


def test_goodput_is_counted_again_at_the_ends() -> None:
    """Far from full and far from every limit nothing changes; near a limit it does."""
    for qps, moves in ((1, False), (18, True)):
        line = f"simulate --hardware h100 --qps {qps} --num-requests 600 --slo-ttft 10s --json"
        result = json.loads(run_command(line)[1])["result"]
        band = next(b for b in result["bands"] if b["figure"] == "goodput_per_s")
        assert band["value"] == result["goodput"]["goodput_per_s"]
        assert (band["low"] < band["value"]) is moves


BAND = ErrorBand("tpot", 0.8, 1.25, 0.8, 30, "any kind", is_measured=True)
WIDE = ErrorBand("ttft", 0.5, 3.0, 0.8, 30, "any kind", is_measured=True)


def test_one_line_where_rows_share_their_bands() -> None:
    rows = [
        (
            name,
            [
                BandedFigure.of("ttft", "P50", value, BAND),
                BandedFigure.of("ttft", "P99", value, WIDE),
                BandedFigure.of("tpot", "P99", value, BAND),
                BandedFigure.between("e2e", "P99", 2.0, (2.0 - share, 2.0 + share), BAND),
            ],
        )
        for name, value, share in (("8", 0.1, 0.5), ("16", 0.3, 0.6))
    ]
    assert shares_note(rows) == (
        "80 % bands: TTFT P50, TPOT -20 to +25 %, TTFT P99 -50 to +200 %, E2E within -30 to +30 %."
    )
    other = [("32", [BandedFigure.of("tpot", "P99", 0.1, WIDE)])]
    assert shares_note([*rows[:1], *other]) == (
        "80 % bands. 8: TTFT P50, TPOT -20 to +25 %, TTFT P99 -50 to +200 %, E2E -25 to +25 %. "
        "32: TPOT -50 to +200 %."
    )
    assert shares_note([("8", [])]) is None


def test_columns_stay_where_a_figure_is_missing() -> None:
    """So that a loop in a shell makes a table."""
    full = with_ends({"ttft_p99_s": 0.1}, [BandedFigure.of("ttft", "P99", 0.1, BAND)])
    assert list(with_ends({"ttft_p99_s": None}, [])) == list(full)
    assert full["ttft_p99_low_s"] == pytest.approx(0.08)


def test_what_the_exercise_prints_is_not_the_models() -> None:
    _, text = run_command("simulate --exercise", width=100)
    assert "has an error band" in text
