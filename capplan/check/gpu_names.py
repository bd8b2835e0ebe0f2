"""Which accelerator a node label, an instance type or a profile names, and how many a node has.

Names are rarely complete: `nvidia-h100` may be SXM, NVL or PCIe. All that fit are kept, the
likeliest first; what is called a fact must hold for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from capplan.specs.catalogue import known_names, load_hardware, normalised_name
from capplan.specs.hardware import HardwareSpec
from capplan.units import GIB


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Names of the catalogue that fit; ``per_node`` where an instance type says it."""

    names: tuple[str, ...]
    per_node: int | None = None
    memory_bytes: int | None = None  # of a MIG slice


# First match counts. Several names: the label does not tell them apart.
_PATTERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"gb300", ("gb300-nvl72",)),
    (r"gb200", ("gb200-nvl72",)),
    (r"gh200.*144|gh200.*141", ("gh200-144gb",)),
    (r"gh200.*96|gh200", ("gh200-96gb", "gh200-144gb")),
    (r"b300", ("b300-sxm-270gb",)),
    (r"b200", ("b200-sxm-180gb",)),
    (r"h200.*nvl(?!ink)", ("h200-nvl-141gb",)),
    (r"h200", ("h200-sxm-141gb", "h200-nvl-141gb")),
    (r"h20-3e|h20.*141", ("h20-3e-141gb",)),
    (r"(?<![a-z0-9])h20(?![0-9])", ("h20-96gb", "h20-3e-141gb")),
    (r"h800", ("h800-sxm-80gb",)),
    (r"h100.*(?:nvl(?!ink)|94)", ("h100-nvl-94gb",)),
    (r"h100.*pcie", ("h100-pcie-80gb",)),
    (r"h100.*(?:hbm3|sxm|nvlink|mega)", ("h100-sxm-80gb",)),
    (r"h100.*80", ("h100-sxm-80gb", "h100-pcie-80gb")),
    (r"h100", ("h100-sxm-80gb", "h100-pcie-80gb", "h100-nvl-94gb")),
    (r"a800", ("a800-sxm-80gb",)),
    (r"nvidia-tesla-a100", ("a100-sxm-40gb",)),
    (r"a100.*pcie.*40|a100.*40.*pcie", ("a100-pcie-40gb",)),
    (r"a100.*pcie.*80|a100.*80.*pcie", ("a100-pcie-80gb",)),
    (r"a100.*sxm.*40|a100.*40.*sxm", ("a100-sxm-40gb",)),
    (r"a100.*sxm.*80|a100.*80.*sxm", ("a100-sxm-80gb",)),
    (r"a100.*40", ("a100-sxm-40gb", "a100-pcie-40gb")),
    (r"a100.*80", ("a100-sxm-80gb", "a100-pcie-80gb")),
    (r"a100", ("a100-sxm-80gb", "a100-pcie-80gb", "a100-sxm-40gb", "a100-pcie-40gb")),
    (r"a6000|rtx-?6000-?ampere", ("rtx-a6000",)),
    (r"rtx.?pro.?6000", ("rtx-pro-6000-server", "rtx-pro-6000-ws")),
    (r"6000-?ada", ("rtx-6000-ada",)),
    (r"(?<![a-z0-9])a10g", ("a10g",)),
    (r"(?<![a-z0-9])a10(?![0-9])", ("a10",)),
    (r"(?<![a-z0-9])a30(?![0-9])", ("a30",)),
    (r"(?<![a-z0-9])a40(?![0-9])", ("a40",)),
    (r"(?<![a-z0-9])l40s", ("l40s",)),
    (r"(?<![a-z0-9])l40(?![0-9])", ("l40",)),
    (r"(?<![a-z0-9])l4(?![0-9])", ("l4",)),
    (r"(?<![a-z0-9])t4(?![0-9])", ("t4",)),
    (r"v100.*32", ("v100-sxm2-32gb",)),
    (r"v100.*16", ("v100-sxm2-16gb",)),
    (r"v100", ("v100-sxm2-16gb", "v100-sxm2-32gb")),
    (r"(?:rtx|geforce).?.?3090", ("rtx-3090",)),
    (r"(?:rtx|geforce).?.?4090", ("rtx-4090",)),
    (r"(?:rtx|geforce).?.?5090", ("rtx-5090",)),
    (r"mi355x?", ("mi355x",)),
    (r"mi325x?", ("mi325x",)),
    (r"mi300x", ("mi300x",)),
    (r"mi250x?", ("mi250x",)),
    (r"mi210", ("mi210",)),
    (r"gaudi-?3", ("gaudi3",)),
    (r"gaudi-?2", ("gaudi2",)),
    (r"tpu-?v5-?lite|tpu-?v5e", ("tpu-v5e",)),
    (r"tpu-?v5p", ("tpu-v5p",)),
    (r"tpu-?v6e", ("tpu-v6e",)),
    (r"tpu-?7x|tpu-?v7x", ("tpu-v7x",)),
)
_MIG = re.compile(r"mig-\d+g\.(\d+)gb")
# Instance families: accelerator, and GPUs by the size in the name.
_FAMILIES: tuple[tuple[str, str, dict[str, int]], ...] = (
    (r"p3\.(\w+)", "v100-sxm2-16gb", {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}),
    (r"p3dn\.(\w+)", "v100-sxm2-32gb", {"24xlarge": 8}),
    (r"p4d\.(\w+)", "a100-sxm-40gb", {"24xlarge": 8}),
    (r"p4de\.(\w+)", "a100-sxm-80gb", {"24xlarge": 8}),
    (r"p5\.(\w+)", "h100-sxm-80gb", {"4xlarge": 1, "48xlarge": 8}),
    (r"p5e?n?\.(\w+)", "h200-sxm-141gb", {"48xlarge": 8}),
    (r"g4dn\.(\w+)", "t4", {"12xlarge": 4, "metal": 8, "": 1}),
    (r"g5\.(\w+)", "a10g", {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8, "": 1}),
    (r"g6\.(\w+)", "l4", {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8, "": 1}),
    (r"g6e\.(\w+)", "l40s", {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8, "": 1}),
    (r"a2-highgpu-(\d+)g", "a100-sxm-40gb", {}),
    (r"a2-megagpu-(\d+)g", "a100-sxm-40gb", {}),
    (r"a2-ultragpu-(\d+)g", "a100-sxm-80gb", {}),
    (r"a3-(?:high|mega|edge)gpu-(\d+)g", "h100-sxm-80gb", {}),
    (r"a3-ultragpu-(\d+)g", "h200-sxm-141gb", {}),
    (r"a4-highgpu-(\d+)g", "b200-sxm-180gb", {}),
    (r"g2-standard-(\d+)", "l4", {"24": 2, "48": 4, "96": 8, "": 1}),
    (r"(?:standard_)?nc(\d+)ads_a100_v4", "a100-pcie-80gb", {"24": 1, "48": 2, "96": 4}),
    (r"(?:standard_)?nc(\d+)adi?s_h100_v5", "h100-nvl-94gb", {"40": 1, "80": 2}),
    (r"(?:standard_)?nc(\d+)as_t4_v3", "t4", {"64": 4, "": 1}),
    (r"(?:standard_)?nc(\d+)r?s_v3", "v100-sxm2-16gb", {"6": 1, "12": 2, "24": 4}),
    (r"(?:standard_)?nv(\d+)ads_a10_v5", "a10", {"36": 1, "72": 2}),
    (r"(?:standard_)?nd(\d+)amsr_a100_v4", "a100-sxm-80gb", {"96": 8}),
    (r"(?:standard_)?nd(\d+)asr_v4", "a100-sxm-40gb", {"96": 8}),
    (r"(?:standard_)?nd(\d+)isr_h100_v5", "h100-sxm-80gb", {"96": 8}),
    (r"(?:standard_)?nd(\d+)isr_h200_v5", "h200-sxm-141gb", {"96": 8}),
    (r"bm\.gpu\.mi300x\.(\d+)", "mi300x", {}),
    (r"bm\.gpu\.h100\.(\d+)", "h100-sxm-80gb", {}),
    (r"bm\.gpu\.h200\.(\d+)", "h200-sxm-141gb", {}),
    (r"bm\.gpu\.b200\.(\d+)", "b200-sxm-180gb", {}),
    (r"bm\.gpu\.a100-v2\.(\d+)", "a100-sxm-80gb", {}),
    (r"bm\.gpu\.l40s\.(\d+)", "l40s", {}),
    (r"(?:bm|vm)\.gpu\.a10\.(\d+)", "a10", {}),
    (r"bm\.gpu4\.(\d+)", "a100-sxm-40gb", {}),
)


def accelerators(text: str) -> Accelerators | None:
    """The accelerators that a text may name, or None where it names none.

    >>> accelerators("NVIDIA-H100-80GB-HBM3"), accelerators("Standard_NC48ads_A100_v4")
    (Accelerators(names=('h100-sxm-80gb',), per_node=None, memory_bytes=None), \
Accelerators(names=('a100-pcie-80gb',), per_node=2, memory_bytes=None))
    >>> accelerators("gpu-pool") is None
    True
    """
    lowered = text.strip().lower()
    for pattern, name, sizes in _FAMILIES:
        match = re.fullmatch(pattern, lowered)
        if match:
            size = match[1]
            num = sizes.get(size, sizes.get("")) if sizes else int(size)
            return Accelerators((name,), num)
    for pattern, names in _PATTERNS:
        if re.search(pattern, lowered):
            return Accelerators(names)
    known = known_names("hardware").get(normalised_name(lowered))
    if known is not None:
        return Accelerators((known,))
    # Which GPU it is a slice of does not matter for the memory that it has.
    size = slice_bytes(lowered)
    return None if size is None else Accelerators((), None, size)


def slice_bytes(resource: str) -> int | None:
    """The memory of a MIG profile: at most the GiB in its name."""
    match = _MIG.search(resource)
    return int(match[1]) * GIB if match else None


def first_of(texts: Iterable[str]) -> Accelerators | None:
    """The first text that names an accelerator; node counts of others are joined in."""
    found: Accelerators | None = None
    for text in texts:
        named = accelerators(text)
        if named is None or not named.names:
            continue
        if found is None:
            found = named
        elif found.per_node is None and named.per_node is not None:
            found = Accelerators(found.names, named.per_node, found.memory_bytes)
        elif len(found.names) > 1:
            both = tuple(name for name in found.names if name in named.names)
            found = Accelerators(both or found.names, found.per_node, found.memory_bytes)
    return found


@cache
def hardware(name: str) -> HardwareSpec:
    """An accelerator of the catalogue, read once."""
    return load_hardware(name).spec
