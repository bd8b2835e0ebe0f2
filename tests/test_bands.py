"""The shipped error bands: which one a prediction gets, and that they are what they say."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.performance.bands import (
    BandKey,
    band_for,
    band_key,
    find_band,
    generation_of,
    kinds,
)
from capplan.specs.catalogue import load_all, load_hardware, load_model
from capplan.specs.error_bands import BandCell, BandTable, Figure, load_bands
from capplan.specs.hardware import HardwareSpec

FIGURES: tuple[Figure, ...] = ("tpot", "ttft", "ttft_p99", "throughput")
HOPPER = BandKey("hopper", "vllm-v1", experts=False, several_gpus=False, loaded=False)
TABLE = Path(__file__).resolve().parent.parent.parent / "shared/data/measured/measured_calib.csv"


def cell(low: float, high: float, **kind: object) -> BandCell:
    return BandCell(figure="tpot", low=low, high=high, rows=30, **kind)  # type: ignore[arg-type]


SMALL = BandTable(
    coverage=0.8,
    sources=("made up",),
    cells=(
        cell(0.5, 2.0),
        cell(0.6, 1.9, experts=False, loaded=False),
        cell(0.9, 1.1, architecture="hopper", engine="vllm-v1", experts=False, loaded=False),
    ),
)


@pytest.mark.parametrize(
    ("changes", "low"),
    [
        ({}, 0.9),
        ({"several_gpus": True}, 0.9),
        ({"engine": "sglang"}, 0.6),
        ({"experts": True}, 0.5),
        ({"loaded": True}, 0.5),
    ],
)
def test_the_narrowest_kind_that_was_measured(changes: dict[str, object], low: float) -> None:
    key = BandKey(**({field: getattr(HOPPER, field) for field in HOPPER.__slots__} | changes))  # type: ignore[arg-type]
    band = find_band("tpot", key, SMALL)
    assert (band.low_ratio, band.is_measured) == (low, True)


def test_a_generation_that_nobody_measured_takes_the_widest_band() -> None:
    band = find_band("tpot", BandKey("gaudi", "vllm-v1", False, False, False), SMALL)
    assert (band.low_ratio, band.high_ratio, band.is_measured) == (0.5, 2.0, False)
    assert band.words.startswith("not measured")


def test_a_band_around_a_value() -> None:
    band = find_band("tpot", HOPPER, SMALL)
    assert band.around(0.020) == pytest.approx((0.018, 0.022))
    assert band.words == "30 measured rows of Hopper, vllm-v1, dense, below 85% load"


keys = st.builds(
    BandKey,
    st.sampled_from(["hopper", "blackwell", "ampere", "ada", "cdna", "gaudi", "other"]),
    st.sampled_from(["vllm-v0", "vllm-v1", "tensorrt-llm", "sglang", "tgi", "turbomind"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.sampled_from(FIGURES), keys)
def test_every_prediction_has_a_band_that_holds_it(figure: Figure, key: BandKey) -> None:
    band = band_for(figure, key)
    assert 0 < band.low_ratio <= 1 <= band.high_ratio
    assert band.num_rows > 0
    assert len(set(kinds(key))) == len(kinds(key))


@given(st.sampled_from(FIGURES), keys)
def test_the_widest_band_is_the_widest(figure: Figure, key: BandKey) -> None:
    widest = band_for(figure, BandKey("other", key.engine, key.experts, False, False))
    band = band_for(figure, key)
    assert widest.low_ratio <= band.low_ratio
    assert widest.high_ratio >= band.high_ratio


def test_cells_are_told_apart() -> None:
    cells = load_bands().cells
    kinds_of = [
        (c.figure, c.architecture, c.engine, c.experts, c.several_gpus, c.loaded) for c in cells
    ]
    assert len(set(kinds_of)) == len(cells)
    for figure in FIGURES:
        assert (figure, None, None, None, None, None) in kinds_of


def test_accelerators_that_were_measured_have_a_generation() -> None:
    named = {generation_of(found.spec) for found in load_all(HardwareSpec, "hardware")}
    measured = {c.architecture for c in load_bands().cells if c.architecture}
    assert measured <= named
    assert generation_of(load_hardware("b300-sxm-270gb").spec) == "blackwell"
    assert generation_of(load_hardware("gh200-96gb").spec) == "hopper"


def test_a_key_says_what_a_prediction_is_like() -> None:
    mixtral, h100 = load_model("mixtral-8x7b").spec, load_hardware("h100-sxm-80gb").spec
    key = band_key(mixtral, h100, "vllm-v1", 2, 0.9)
    assert key == BandKey("hopper", "vllm-v1", experts=True, several_gpus=True, loaded=True)


@pytest.mark.skipif(not TABLE.exists(), reason="the measured table is not here")
def test_measured_rows_fall_inside() -> None:
    """A sample; `benchmarks/error_bands.py` tests all rows with bands made without them."""
    from capplan.accuracy.load import load_of
    from capplan.accuracy.measured import read_measured
    from capplan.accuracy.predict import predict
    from capplan.accuracy.score import TPOT, first_of, pairs_of
    from capplan.accuracy.settings import settings_of

    core = [run for run in read_measured(TABLE) if run.columns["core"] == "1"]
    chosen = [run for run in core if run.workload in ("closed", "static")]
    inside = []
    for run in random.Random(4).sample(chosen, 60):
        settings, load = settings_of(run), load_of(run)
        pair = first_of(pairs_of(run, predict(run)), TPOT)
        if pair is None or pair.predicted is None or load.concurrency > 128:
            continue
        gpus = settings.tp * settings.pp * settings.dp
        key = band_key(settings.model, settings.hardware, settings.engine.scheduler, gpus, 0.5)
        low, high = band_for("tpot", key).around(pair.predicted)
        inside.append(low <= pair.measured <= high)
    assert len(inside) > 20
    # 80 % are meant; a sample of so many may lie this far off.
    assert abs(sum(inside) / len(inside) - 0.8) < 3 * math.sqrt(0.16 / len(inside))
