"""The accelerator files: each loads, is plausible, and says what its data sheet says."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from capplan.formulas.collectives import all_reduce_time_s
from capplan.specs.documents import read_yaml
from capplan.specs.fields import validate
from capplan.specs.hardware import HardwareSpec
from capplan.units import parse_bytes

FILES = sorted((Path(__file__).resolve().parent.parent / "hardware").glob("*.yaml"))
IDS = [path.stem for path in FILES]

every_file = pytest.mark.parametrize("path", FILES, ids=IDS)

FLOP_PER_UNIT_AND_CLOCK = [2**n for n in range(9, 15)]
# H100 PCIe, H100 NVL, H200 NVL, B200 and B300 publish a peak at another clock than the boost clock:
# their files leave the clock out and say so in a note. The GB200's SM count is unverified.
NO_CLOCK = {
    "b200-sxm-180gb", "b300-sxm-270gb", "gb200-nvl72", "h100-nvl-94gb", "h100-pcie-80gb",
    "h200-nvl-141gb",
}  # fmt: skip

# id: bf16 (fp16 where there is none) in TFLOP/s, GB/s, what the driver shows in MiB
GOLDEN = {
    "a100-sxm-40gb": (312, 1555, 40960),
    "a100-sxm-80gb": (312, 2039, 81920),
    "a100-pcie-80gb": (312, 1935, 81920),
    "a10g": (70, 600, 23028),
    "b200-sxm-180gb": (2250, 7700, 183359),
    "b300-sxm-270gb": (2250, 7700, 275040),
    "gaudi3": (1677, 3700, 131072),
    "gb200-nvl72": (2500, 8000, 189471),
    "gh200-96gb": (989.4, 4000, 97871),
    "h100-nvl-94gb": (835.5, 3938, 95830),
    "h100-pcie-80gb": (756.5, 2000, 81559),
    "h100-sxm-80gb": (989.4, 3350, 81559),
    "h20-3e-141gb": (148, 4800, None),
    "h20-96gb": (148, 4000, 97871),
    "h200-sxm-141gb": (989.4, 4800, 143771),
    "l4": (121, 300, 23034),
    "l40s": (362.05, 864, 46068),
    "mi300x": (1307.4, 5325, 196592),
    "mi325x": (1307.4, 6000, 262128),
    "mi355x": (2516.6, 8000, 294896),
    "rtx-4090": (165.2, 1008, 24564),
    "rtx-pro-6000-server": (467.8, 1597, 97887),
    "t4": (65.1, 320, 15360),
    "tpu-v5e": (197, 819, None),
    "v100-sxm2-32gb": (125, 900, 32768),
}

# What people paste, and what public benchmarks and engine logs call these cards.
NAMES = {
    "A100": "a100-sxm-80gb",
    "A100 40GB": "a100-sxm-40gb",
    "A100 80GB PCIe": "a100-pcie-80gb",
    "A100-40GB-SXM": "a100-sxm-40gb",
    "A100-80GB": "a100-sxm-80gb",
    "A100-80GB-PCIe": "a100-pcie-80gb",
    "A100-80GB-SXM": "a100-sxm-80gb",
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "A800-SXM4-80GB": "a800-sxm-80gb",
    "AMD Instinct MI300X": "mi300x",
    "B200": "b200-sxm-180gb",
    "B300": "b300-sxm-270gb",
    "DGX Spark GB10": "gb10-dgx-spark",
    "GB200": "gb200-nvl72",
    "GB300": "gb300-nvl72",
    "GH200": "gh200-96gb",
    "H100": "h100-sxm-80gb",
    "H100 80GB HBM3": "h100-sxm-80gb",
    "H100 96GB NVL": "h100-nvl-94gb",
    "H100 NVL 94GB": "h100-nvl-94gb",
    "H100-NVL": "h100-nvl-94gb",
    "H100-PCIe": "h100-pcie-80gb",
    "H100-SXM": "h100-sxm-80gb",
    "H20": "h20-96gb",
    "H20-3e": "h20-3e-141gb",
    "H200": "h200-sxm-141gb",
    "H200-NVL": "h200-nvl-141gb",
    "H200-SXM": "h200-sxm-141gb",
    "H800": "h800-sxm-80gb",
    "L4 24GB": "l4",
    "L40S 48GB": "l40s",
    "MI300X": "mi300x",
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb",
    "NVIDIA-H100-80GB-HBM3": "h100-sxm-80gb",
    "RTX 3090 24GB": "rtx-3090",
    "RTX 5090 32GB": "rtx-5090",
    "RTX-6000-Ada": "rtx-6000-ada",
    "RTX-A6000": "rtx-a6000",
    "RTX-PRO-6000": "rtx-pro-6000-server",
    "Standard_ND96isr_H100_v5": "h100-sxm-80gb",
    "TPU v5e": "tpu-v5e",
    "Tesla T4": "t4",
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "a3-highgpu-8g": "h100-sxm-80gb",
    "g6e.xlarge": "l40s",
    "h100_sxm": "h100-sxm-80gb",
    "p4de.24xlarge": "a100-sxm-80gb",
    "p5.48xlarge": "h100-sxm-80gb",
}


def load(path: Path) -> HardwareSpec:
    return validate(HardwareSpec, read_yaml(path))


def load_id(name: str) -> HardwareSpec:
    return load(FILES[IDS.index(name)])


def normalised(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


def owners() -> list[tuple[str, str]]:
    """Every name of the catalogue, normalised, with the file it stands for."""
    return [
        (normalised(name), path.stem) for path in FILES for name in (path.stem, *load(path).aliases)
    ]


def sources(data: Any, key: str = "") -> list[str]:
    """All texts under ``source`` and ``sources``, anywhere in a document."""
    if isinstance(data, dict):
        return [text for name, value in data.items() for text in sources(value, name)]
    if isinstance(data, list):
        return [text for value in data for text in sources(value, key)]
    return [str(data)] if key in ("source", "sources") else []


def test_the_catalogue_is_there() -> None:
    assert len(FILES) >= 48


@every_file
def test_loads_and_is_named_in_kebab_case(path: Path) -> None:
    spec = load(path)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", path.stem)
    assert spec.name
    assert max(len(line) for line in path.read_text(encoding="utf-8").splitlines()) <= 120


def test_every_name_belongs_to_one_file() -> None:
    names = [name for name, _ in owners()]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize(("name", "owner"), NAMES.items(), ids=list(NAMES))
def test_what_people_paste_is_known(name: str, owner: str) -> None:
    assert dict(owners()).get(normalised(name)) == owner


@every_file
def test_ridge_point_is_plausible(path: Path) -> None:
    spec = load(path)
    assert 20 < max(spec.compute.peak.values()) / spec.memory.bandwidth < 2_000


def test_peak_follows_from_units_and_clock() -> None:
    off_by = {}
    for path in FILES:
        compute = load(path).compute
        peak = compute.peak.get("bf16") or compute.peak.get("fp16")
        if compute.units and compute.clock and peak:
            derived = [compute.units * compute.clock * flop for flop in FLOP_PER_UNIT_AND_CLOCK]
            off_by[path.stem] = min(abs(peak / other - 1) for other in derived)
    assert len(off_by) >= 30
    assert {name: off for name, off in off_by.items() if off > 0.012} == {}


def test_a_clock_that_contradicts_the_peak_is_left_out() -> None:
    assert {name for name in NO_CLOCK if load_id(name).compute.clock is not None} == set()


@every_file
def test_narrower_formats_are_not_slower(path: Path) -> None:
    peak = load(path).compute.peak
    if "fp16" in peak and "bf16" in peak:
        assert peak["fp16"] == pytest.approx(peak["bf16"], rel=0.01)
    # Equal where a format has no unit of its own (fp8 on Gaudi 3 and TPU v6e). A longer step would
    # be a figure with sparsity.
    steps = {("bf16", "fp8"): 2.05, ("fp8", "fp4"): 4.05, ("int8", "int4"): 2.05}
    for (wide, narrow), longest in steps.items():
        if wide in peak and narrow in peak:
            assert 1 <= peak[narrow] / peak[wide] < longest


@every_file
def test_memory_shrinks_from_the_driver_to_the_program(path: Path) -> None:
    memory = load(path).memory
    if memory.driver is not None:
        assert memory.driver == pytest.approx(memory.marketed, rel=0.12)
    if memory.visible is not None:
        assert memory.visible == pytest.approx(memory.driver or memory.marketed, rel=0.03)
        assert memory.visible <= (memory.driver or memory.visible)


@every_file
def test_links_are_per_direction(path: Path) -> None:
    spec = load(path)
    if spec.pcie is not None:
        per_lane = {3: 15.75, 4: 31.5, 5: 63, 6: 121}[spec.pcie.generation] / 16
        assert spec.pcie.bandwidth == pytest.approx(per_lane * spec.pcie.lanes * 1e9)
    if spec.scale_up is not None:
        assert spec.scale_up.domain > 1
        assert spec.scale_up.bandwidth >= (spec.scale_up.peer_bandwidth or 0)
        assert spec.scale_up.bandwidth < spec.memory.bandwidth


@every_file
def test_sources_are_public(path: Path) -> None:
    found = sources(read_yaml(path).data)
    assert found
    for text in found:
        assert text.strip()
        assert "://" not in text
        assert not re.match(r"[/~.]|[A-Za-z]:\\", text), "a path on someone's machine"


@every_file
def test_prices_are_dated(path: Path) -> None:
    rows = read_yaml(path).data.get("prices", [])
    assert len(rows) <= 4
    for row in rows:
        assert date.fromisoformat(row["as_of"]).isoformat() == row["as_of"]
        assert row["tier"] in ("on-demand", "marketplace", "estimate")
    tiers = [row["tier"] for row in rows]
    assert tiers == sorted(tiers, key=["on-demand", "marketplace", "estimate"].index)


@every_file
def test_measured_shares_are_below_one(path: Path) -> None:
    spec = load(path)
    assert set(spec.measured.gemm) <= set(spec.compute.peak)
    for gemm in spec.measured.gemm.values():
        assert 0.2 < gemm.fraction < 1
    if spec.measured.memory_bandwidth is not None:
        assert 0.5 < spec.measured.memory_bandwidth.fraction < 1


@every_file
def test_measured_all_reduce_fits_the_link(path: Path) -> None:
    spec = load(path)
    rows = spec.measured.all_reduce
    assert [row.gpus for row in rows] == sorted({row.gpus for row in rows})
    link = spec.scale_up or spec.pcie
    for row in rows:
        assert 1e-6 < row.latency < 100e-6
        # In-switch reduction lifts the bus bandwidth a little over the link's.
        assert link is not None
        assert row.bus_bandwidth < 1.1 * link.bandwidth


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_figures(name: str) -> None:
    tflops, gb_per_s, driver_mib = GOLDEN[name]
    spec = load_id(name)
    peak = spec.compute.peak.get("bf16") or spec.compute.peak["fp16"]
    assert peak == pytest.approx(tflops * 1e12)
    assert spec.memory.bandwidth == pytest.approx(gb_per_s * 1e9)
    assert spec.memory.driver == (None if driver_mib is None else driver_mib * 2**20)


@pytest.mark.parametrize(
    ("name", "visible"),
    [
        ("a100-sxm-40gb", "39.39 GiB"),
        ("a100-sxm-80gb", "81251 MiB"),
        ("a10g", "21.99 GiB"),
        ("b200-sxm-180gb", "182642 MiB"),
        ("h100-sxm-80gb", "81089 MiB"),
        ("h200-sxm-141gb", "143156 MiB"),
        ("mi300x", "191.45 GiB"),
        ("t4", "15095 MiB"),
    ],
)
def test_golden_visible_memory(name: str, visible: str) -> None:
    spec = load_id(name)
    assert spec.visible_memory_bytes == parse_bytes(visible)
    assert not spec.visible_memory_is_estimate


@pytest.mark.parametrize(
    ("name", "usd"),
    [
        ("a100-sxm-80gb", 3.4309),
        ("a10g", 1.418),
        ("b200-sxm-180gb", 14.2416),
        ("h100-sxm-80gb", 6.88),
        ("h200-sxm-141gb", 7.912),
        ("l4", 1.1504),
        ("l40s", 2.6232),
    ],
)
def test_golden_list_price(name: str, usd: float) -> None:
    price = load_id(name).list_price
    assert price is not None
    assert price.usd_per_gpu_hour == usd


@pytest.mark.parametrize("name", ["gb200-nvl72", "gb300-nvl72", "mi300x", "mi325x", "mi355x"])
def test_an_estimate_is_no_list_price(name: str) -> None:
    spec = load_id(name)
    assert spec.prices
    assert spec.list_price is None


@pytest.mark.parametrize(
    ("name", "fractions"),
    [
        ("a100-sxm-80gb", {"bf16": 0.839, "fp16": 0.839}),
        ("b200-sxm-180gb", {"bf16": 0.654, "fp16": 0.654, "fp8": 0.527, "fp4": 0.392}),
        ("h100-sxm-80gb", {"bf16": 0.779, "fp16": 0.779, "fp8": 0.616}),
        ("mi300x", {"bf16": 0.511, "fp16": 0.511}),
        ("rtx-4090", {"bf16": 0.97, "fp16": 0.97}),
    ],
)
def test_golden_measured_shares(name: str, fractions: dict[str, float]) -> None:
    assert {key: gemm.fraction for key, gemm in load_id(name).measured.gemm.items()} == fractions


@pytest.mark.parametrize(
    ("name", "gpus", "kib", "fastest_us", "slowest_us"),
    [
        ("h100-sxm-80gb", 2, 16, 3, 4),
        ("h100-sxm-80gb", 2, 65536, 248, 307),
        ("h100-sxm-80gb", 4, 1024, 11, 13),
        ("h100-sxm-80gb", 8, 1024, 13, 26),
        ("h100-sxm-80gb", 8, 16384, 92, 122),
        ("h100-sxm-80gb", 8, 262144, 1090, 1095),
        ("b200-sxm-180gb", 8, 4096, 24, 39),
        ("a100-sxm-80gb", 4, 4096, 41, 70),
    ],
)
def test_golden_all_reduce(
    name: str, gpus: int, kib: int, fastest_us: float, slowest_us: float
) -> None:
    """Between the engines' kernels in ai-dynamo/aiconfigurator@095f58a, or a fifth beside them."""
    (row,) = [r for r in load_id(name).measured.all_reduce if r.gpus == gpus]
    half = row.half_size or 0.0
    us = all_reduce_time_s(kib * 1024, gpus, row.latency, row.bus_bandwidth, half) * 1e6
    assert fastest_us / 1.2 < us < slowest_us * 1.2
