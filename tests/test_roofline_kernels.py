"""A step kernel by kernel: the parts are those of the whole, and stand where they must."""

from __future__ import annotations

import json
from typing import Any

import pytest
from commands import run_command

from capplan.performance.kernels import kernels_of
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.specs.catalogue import load_hardware, load_model
from capplan.units import format_duration

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-3-27b", "qwen3.5-27b")


def answer(line: str) -> dict[str, Any]:
    code, out = run_command(f"{line} --json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)["result"]
    return found


@pytest.mark.parametrize("name", MODELS)
def test_kernels_add_up_to_the_step(name: str) -> None:
    model, hardware = load_model(name).spec, load_hardware("h200-sxm-141gb").spec
    rates = derated_rates(hardware, 2)
    steps = StepModel(model, hardware, rates, tp=2, kv_dtype=model.activation_dtype)
    for num in (1.0, 48.0):
        batch = steps.batch(num, steps.uniform_reads(num, 2048), [])
        kernels = kernels_of(steps, batch)
        assert sum(k.time_s for k in kernels) == pytest.approx(steps.time(batch).total_s)
        assert sum(k.flop for k in kernels) == pytest.approx(steps.work(batch).flop, rel=1e-6)


def test_a_product_of_one_row_is_one_flop_a_byte() -> None:
    """bf16: two FLOP for each weight of two bytes; activations are next to nothing."""
    found = answer("roofline --kernels --batch 1 --context 2048 --hardware h100-sxm-80gb")
    decode = {k["kernel"]: k for k in found["kernels"] if k["phase"] == "decode"}
    for name in ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"):
        assert decode[name]["intensity_flop_per_byte"] == pytest.approx(1.0, rel=0.01)
        assert decode[name]["bound"] == "memory"
    # Four query heads share each KV head, whose key and value take two FLOP a byte together.
    assert decode["attention"]["intensity_flop_per_byte"] == pytest.approx(4.0, rel=0.01)
    shares = [k["step_fraction"] for k in decode.values()]
    assert sum(shares) == pytest.approx(1.0)
    assert all(k["derated_time_s"] >= (k["time_s"] or 0.0) for k in decode.values())


def test_kernels_are_told_only_where_asked() -> None:
    assert answer("roofline")["kernels"] == []
    code, out = run_command("roofline --kernels --hardware h100-sxm-80gb,a100-sxm-80gb --batch 8")
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split("\t")[3] == "kernel"
    assert {row.split("\t")[-1] for row in rows} == {"h100-sxm-80gb", "a100-sxm-80gb"}


def test_utilisation_is_what_the_derated_time_makes_of_the_data_sheet() -> None:
    """MFU stays below what the roof allows, MBU below one; by hand for one decode."""
    found = answer("roofline --batch 1,64 --context 2048 --hardware h100-sxm-80gb")
    for point in found["points"]:
        assert 0 < point["mfu"] < point["peak_fraction"]
        assert 0 < point["mbu"] < 1
    decode = next(p for p in found["points"] if p["phase"] == "decode")
    # Embeddings are looked up, not read whole; the KV of a token is 128 KiB.
    weights, kv = 2 * (8.03e9 - 128_256 * 4096), 2048 * 131_072
    assert decode["mbu"] == pytest.approx(
        (weights + kv) / decode["derated_time_s"] / 3.35e12, rel=2e-3
    )


def test_a_step_by_kernel_has_its_band_and_fits() -> None:
    _, text = run_command("roofline --kernels --batch 8 --context 2048", width=80)
    points = answer("roofline --batch 8 --context 2048")["points"]
    for point, what in zip(points, ("Prefill of 2,048 tokens", "Decode of 8 at 2,048 tokens"),
                           strict=True):  # fmt: skip
        time = format_duration(point["derated_time_s"], digits=3)
        assert f"{what} by kernel: {time}, 80 % band " in text
    assert max(map(len, text.splitlines())) <= 80
