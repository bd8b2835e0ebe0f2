"""The rates that a step runs at: the data sheet's, or those derated by what was measured.

Where an accelerator has no measurement of its own, a documented default is used and said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from capplan.errors import UnsupportedError
from capplan.formulas.number_formats import FORMATS, OFFERED_FORMATS
from capplan.performance.kernel_rates import KernelRates
from capplan.performance.overheads import PLAIN_KERNELS, EngineKernels
from capplan.specs.architecture import ArchitectureSpec, Serving, architecture_of
from capplan.specs.hardware import AllReduceMeasurement, HardwareSpec, Pcie, ScaleUp

MESH_FRACTION = 0.75  # ring all-reduce over a mesh of links
# Over a switched link, by the number of GPUs: shares of its bandwidth, and what is moved at half
# of them. Medians of A100, H100, H200, B200, B300, GB200 and GB300.
SWITCHED_FRACTION = {2: 0.54, 4: 0.73, 8: 0.88}
SWITCHED_HALF_BYTES = {2: 0.0, 4: 4e6, 8: 12e6}
DEFAULT_LINK_LATENCY_S = 5e-6
# Without a fast link: L40S and RTX PRO 6000 over PCIe reach 0.6 of the link as a pair and
# 0.4 as four, at 8 and 13 us.
DEFAULT_PCIE_FRACTION = {2: 0.6}
DEFAULT_PCIE_FRACTION_MANY = 0.4
DEFAULT_PCIE_LATENCY_S = 13e-6
# Through the host's memory, where the driver keeps cards from reaching each other. As served by two
# and four RTX 4090 on marketplace hosts (io.net: a 7B and an 8B model agree). Kernels alone took 26
# and 45 us over four and eight L40S in a server without usable peer-to-peer, at 0.16 and 0.045 of
# the link (aiconfigurator@095f58a l40s/comm), 42 us over eight RTX 4090 (NVIDIA/nccl#1530). Eight
# are not measured in service: the latency grows on, and the share lies between that server's and
# the 0.9 that NVIDIA/nccl#1639 reports of one with fast memory.
HOST_FRACTION = {2: 0.122, 4: 0.135, 8: 0.085}
HOST_LATENCY_S = {2: 57e-6, 4: 76e-6, 8: 100e-6}


@dataclass(frozen=True, slots=True)
class AllReduceRate:
    latency_s: float
    bus_bandwidth_bytes_per_s: float
    half_bytes: float = 0.0  # moved at half of that bandwidth
    through_host: bool = False  # a rate of the host: no accelerator's correction applies


@dataclass(frozen=True, slots=True)
class Rates:
    """What one accelerator delivers; ``notes`` say what was assumed rather than measured."""

    flops_per_s: dict[str, float]  # by compute format
    bandwidth_bytes_per_s: float
    all_reduce: AllReduceRate | None  # None for one GPU, and for ideal rates
    gemm_fraction: dict[str, float]
    bandwidth_fraction: float
    notes: tuple[str, ...]
    kernels: KernelRates | None = None  # None: the sheet's rates, nothing fixed, full overlap
    exchange: AllReduceRate | None = None  # over all ranks of data-parallel attention
    hop: AllReduceRate | None = None  # from one pipeline stage to the next


def ideal_rates(hardware: HardwareSpec) -> Rates:
    """The data sheet's dense peaks and bandwidth; collectives take no time."""
    peaks: dict[str, float] = {str(name): peak for name, peak in hardware.compute.peak.items()}
    ones = dict.fromkeys(peaks, 1.0)
    return Rates(peaks, hardware.memory.bandwidth, None, ones, 1.0, ())


def derated_rates(
    hardware: HardwareSpec,
    tp: int,
    used_format: str | None = None,
    *,
    dp: int = 1,
    pp: int = 1,
    fixed_factor: float = 1.0,
    engine: EngineKernels = PLAIN_KERNELS,
) -> Rates:
    """Peaks, bandwidth and all-reduce as measured, here or on accelerators of its generation.

    Notes speak of ``used_format`` only.
    """
    architecture = architecture_of(hardware.architecture)
    kernels = KernelRates(hardware, architecture, fixed_factor, ranks=tp * dp, engine=engine)
    notes = list(_unmeasured(hardware, architecture, used_format))
    all_reduce, note = _all_reduce(hardware, tp)
    if note:
        notes.append(note)
    return replace(
        reached(ideal_rates(hardware), kernels),
        all_reduce=_under(engine, all_reduce),
        notes=tuple(notes),
        exchange=_under(engine, _all_reduce(hardware, tp * dp)[0]) if dp > 1 else None,
        hop=_under(engine, _all_reduce(hardware, 2)[0]) if pp > 1 else None,
    )


def reached(rates: Rates, kernels: KernelRates) -> Rates:
    """With the shares of the sheet's peaks and bandwidth that these kernels reach."""
    hardware = kernels.hardware
    fractions = {name: kernels.compute_fraction(name) for name in rates.gemm_fraction}
    return replace(
        rates,
        flops_per_s={
            str(name): peak * fractions[name] for name, peak in hardware.compute.peak.items()
        },
        gemm_fraction=fractions,
        bandwidth_bytes_per_s=hardware.memory.bandwidth * kernels.bandwidth_fraction,
        bandwidth_fraction=kernels.bandwidth_fraction,
        kernels=kernels,
    )


def _unmeasured(
    hardware: HardwareSpec, architecture: ArchitectureSpec, used_format: str | None
) -> Iterator[str]:
    """What stands on another accelerator's measurements."""
    source = f"as {architecture.name}" if architecture.measured_on else "as usual elsewhere"
    if used_format is not None and used_format not in hardware.measured.gemm:
        yield f"{used_format} matrix products: {source}"
    if hardware.measured.memory_bandwidth is None:
        yield f"memory bandwidth: {source}"


def beyond_measured(rates: Rates, tokens: int) -> str | None:
    """A note where steps of so many tokens leave the range that the curves were measured in."""
    if rates.kernels is None:
        return None
    architecture = rates.kernels.architecture
    if tokens <= architecture.most_tokens or not architecture.measured_on:
        return None
    return f"steps of {tokens:,} tokens: curves were measured up to {architecture.most_tokens:,}"


def _served(rate: AllReduceRate, serving: Serving) -> AllReduceRate:
    """With the latency and bandwidth that running servers see."""
    return replace(
        rate,
        latency_s=rate.latency_s * serving.latency,
        bus_bandwidth_bytes_per_s=rate.bus_bandwidth_bytes_per_s * serving.link,
    )


def _under(engine: EngineKernels, rate: AllReduceRate | None) -> AllReduceRate | None:
    """By the collectives of an engine's own build."""
    if rate is None or engine.latency == engine.link == 1.0:
        return rate
    return replace(
        rate,
        latency_s=rate.latency_s * engine.latency,
        bus_bandwidth_bytes_per_s=rate.bus_bandwidth_bytes_per_s * engine.link,
    )


def compute_format(hardware: HardwareSpec, number_format: str, activation_dtype: str) -> str:
    """The peak that products with weights of ``number_format`` run at.

    Raises UnsupportedError when the accelerator has no such tensor cores.
    """
    wanted = FORMATS[number_format].compute or activation_dtype
    peaks = hardware.compute.peak
    if wanted in peaks:
        return wanted
    has = [n for n in OFFERED_FORMATS if (FORMATS[n].compute or activation_dtype) in peaks]
    raise UnsupportedError(
        f"{hardware.name} has no {wanted} tensor cores, which {number_format} weights need",
        hint=f"weights it computes: {', '.join(has)} (--dtype)" if has else None,
    )


def _all_reduce(hardware: HardwareSpec, tp: int) -> tuple[AllReduceRate | None, str | None]:
    """As served; None for one GPU. The note says what is not measured."""
    if tp == 1:
        return None, None
    serving = architecture_of(hardware.architecture).serving
    rows = hardware.measured.all_reduce
    if rows:
        row = min(rows, key=lambda r: (abs(r.gpus - tp), -r.gpus))
        note = None if row.gpus == tp else f"all-reduce over {tp} GPUs: taken from {row.gpus}"
        return _served(_rate_of(row), serving), note
    note = f"all-reduce over {tp} GPUs: default share of the link"
    if hardware.scale_up is not None and tp <= hardware.scale_up.domain:
        return _served(_link_all_reduce(hardware.scale_up, tp), serving), note
    if hardware.pcie is not None and hardware.pcie.peer_to_peer:
        note = f"all-reduce over {tp} GPUs: default share of PCIe"
        return _served(_pcie_all_reduce(hardware.pcie, tp), serving), note
    if hardware.pcie is not None:
        note = f"all-reduce over {tp} GPUs: default share of PCIe through the host"
        return _host_all_reduce(hardware.pcie, tp), note
    raise UnsupportedError(
        f"{hardware.name} names no link between accelerators, so TP {tp} cannot be planned",
        hint="use --tp 1, or add `scale_up` or `pcie` to its file",
    )


def _link_all_reduce(links: ScaleUp, tp: int) -> AllReduceRate:
    link, peer = links.bandwidth, links.peer_bandwidth
    if peer is not None and peer < link:
        # On a mesh each pair has a link of its own, and a group uses those between its members.
        link = min(link, peer * (tp - 1))
        return AllReduceRate(DEFAULT_LINK_LATENCY_S, MESH_FRACTION * link)
    size = min((num for num in SWITCHED_FRACTION if num >= tp), default=max(SWITCHED_FRACTION))
    share, half = SWITCHED_FRACTION[size], SWITCHED_HALF_BYTES[size]
    return AllReduceRate(DEFAULT_LINK_LATENCY_S, share * link, half)


def _pcie_all_reduce(pcie: Pcie, tp: int) -> AllReduceRate:
    share = DEFAULT_PCIE_FRACTION.get(tp, DEFAULT_PCIE_FRACTION_MANY)
    return AllReduceRate(DEFAULT_PCIE_LATENCY_S, share * pcie.bandwidth)


def _host_all_reduce(pcie: Pcie, tp: int) -> AllReduceRate:
    """Of the host, not of the accelerator: its generation's corrections say nothing of it."""
    size = min((num for num in HOST_FRACTION if num >= tp), default=max(HOST_FRACTION))
    return AllReduceRate(
        HOST_LATENCY_S[size], HOST_FRACTION[size] * pcie.bandwidth, through_host=True
    )


def _rate_of(row: AllReduceMeasurement) -> AllReduceRate:
    return AllReduceRate(row.latency, row.bus_bandwidth, row.half_size or 0.0)
