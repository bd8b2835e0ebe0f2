"""Money and power: the bill adds up, prices come from where it says, and power from TDP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from commands import run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.formulas import capacity


def answer(line: str) -> dict[str, Any]:
    _, text = run_command(f"gpus {line} --json")
    found: dict[str, Any] = json.loads(text)["result"]
    return found


def test_the_bill_is_dealt_out_over_tokens() -> None:
    """Prompt and output tokens at their prices add up to the bill of an hour."""
    result = answer("--qps 100 --prompt-tokens 1024 --output-tokens 256")
    cost = result["cost"]
    million_prompt = 100 * 1024 * 3600 / 1e6
    million_output = 100 * 256 * 3600 / 1e6
    total = (
        million_prompt * cost["usd_per_million_prompt_tokens"]
        + million_output * cost["usd_per_million_generated_tokens"]
    )
    assert total == pytest.approx(cost["usd_per_hour"])
    alike = (million_prompt + million_output) * cost["usd_per_million_tokens"]
    assert alike == pytest.approx(cost["usd_per_hour"])
    assert result["usd_per_million_output_tokens"] * million_output == pytest.approx(
        cost["usd_per_hour"]
    )


def test_price_and_date_are_those_of_the_file() -> None:
    cost = answer("--hardware a100-sxm-80gb")["cost"]
    assert cost["usd_per_gpu_hour"] == 3.4309  # AWS p4de.24xlarge, as the file has it
    assert cost["as_of"] == "2026-07-20"
    assert cost["usd_per_month"] == pytest.approx(cost["usd_per_hour"] * 730)


def test_factor_scales_the_bill_and_nothing_else() -> None:
    whole, part = answer(""), answer("--price-factor 0.6")
    assert part["usd_per_hour"] == pytest.approx(0.6 * whole["usd_per_hour"])
    assert part["cost"]["usd_per_gpu_hour_listed"] == whole["cost"]["usd_per_gpu_hour_listed"]
    assert part["num_gpus"] == whole["num_gpus"]
    assert part["power"] == whole["power"]


def test_commitment_takes_the_price_of_its_tier() -> None:
    cost = answer("--commitment marketplace")["cost"]
    assert (cost["tier"], cost["usd_per_gpu_hour"]) == ("marketplace", 1.39)  # RunPod, community


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--commitment spot", ["no spot price of a100-sxm-80gb", "--price-factor", "marketplace"]),
        ("--commitment on-demmand", ["is not a kind of price", "`on-demand`"]),
        ("--commitment spot --price $2", ["says nothing beside --price"]),
        ("--price-factor 0", ["--price-factor", "not a number from"]),
        ("--idle-power 120%", ["--idle-power"]),
    ],
)
def test_bad_prices_are_one_clear_message(line: str, words: list[str]) -> None:
    with pytest.raises(AssertionError) as refused:
        run_command(f"gpus {line}")
    assert all(word in str(refused.value) for word in words), refused.value


def test_power_of_a_fleet() -> None:
    power = answer("--hardware h100-sxm-80gb --idle-power 20%")["power"]
    assert power["tdp_w_per_gpu"] == 700  # NVIDIA's data sheet
    assert power["peak_power_w"] == 700 * power["num_gpus"]
    assert 0.2 * power["peak_power_w"] < power["average_power_w"] <= power["peak_power_w"]
    # Tokens of an hour at this energy use the energy of an hour.
    million_per_hour = 100 * (1024 + 256) * 3600 / 1e6
    kwh = million_per_hour * power["kwh_per_million_tokens"]
    assert kwh == pytest.approx(power["average_power_w"] / 1e3)


def test_without_price_or_board_there_is_no_figure() -> None:
    assert answer("--hardware a30")["cost"] is None
    assert answer("--hardware a30 --price $1")["cost"]["as_of"] is None
    assert answer("--slo-tpot 1ms")["power"] is None  # no fleet, no power


fractions = st.floats(0, 1)


@given(tdp_w=st.floats(1, 2000), busy=fractions, idle=fractions)
def test_power_stays_between_idle_and_tdp(tdp_w: float, busy: float, idle: float) -> None:
    watts = capacity.average_power_w(tdp_w, busy, idle)
    assert idle * tdp_w * (1 - 1e-12) <= watts <= tdp_w * (1 + 1e-12)
