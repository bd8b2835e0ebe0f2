"""An accelerator, as its data sheet, its driver and measurements describe it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from capplan.specs.fields import (
    Bytes,
    BytesPerS,
    Count,
    Date,
    Flag,
    FlopPerS,
    Fraction,
    Hertz,
    Seconds,
    Sources,
    Spec,
    SpecError,
    Text,
    Watts,
)

ComputeFormat = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"]

# CUDA shows a process 0.5 to 2 % less than the driver's total; the middle where nobody printed it.
ESTIMATED_VISIBLE_FRACTION = 0.99


class Compute(Spec):
    """Dense peaks (never the 2:4 sparsity figures); integer formats in OP/s."""

    units: Count | None = None  # SMs, CUs, cores
    clock: Hertz | None = None
    peak: Annotated[dict[ComputeFormat, FlopPerS], Field(min_length=1)]
    note: Text | None = None
    sources: Sources


class Memory(Spec):
    """Device memory; ``marketed`` is decimal, what the driver and CUDA show is binary."""

    marketed: Bytes
    driver: Bytes | None = None
    visible: Bytes | None = None
    type: Text
    bandwidth: BytesPerS
    l2: Bytes | None = None
    note: Text | None = None
    sources: Sources


class ScaleUp(Spec):
    """The fast link between accelerators: per direction and accelerator."""

    name: Text
    bandwidth: BytesPerS
    peer_bandwidth: BytesPerS | None = None  # one pair alone; lower on meshes and tori
    domain: Count
    note: Text | None = None
    sources: Sources


class Pcie(Spec):
    generation: Count
    lanes: Count = 16
    bandwidth: BytesPerS  # per direction
    # False: the driver lets cards talk to each other through the host's memory only.
    peer_to_peer: Flag = True


class Board(Spec):
    tdp: Watts
    sources: Sources


class Node(Spec):
    """The usual server: accelerators in it, and its network per accelerator."""

    gpus: Count
    network: BytesPerS | None = None
    note: Text | None = None


PriceTier = Literal["on-demand", "reserved", "spot", "marketplace", "estimate"]


class Price(Spec):
    provider: Text
    instance: Text | None = None
    region: Text | None = None
    tier: PriceTier = "on-demand"
    usd_per_gpu_hour: Annotated[float, Strict(), Field(gt=0, lt=10_000, allow_inf_nan=False)]
    as_of: Date
    source: Text


class GemmMeasurement(Spec):
    """Share of the dense peak that large matrix products reach."""

    fraction: Fraction
    condition: Text
    source: Text


class BandwidthMeasurement(Spec):
    """Share of the data-sheet bandwidth that weight streaming reaches."""

    fraction: Fraction
    condition: Text
    source: Text


class AllReduceMeasurement(Spec):
    """One all-reduce over ``gpus`` accelerators of a node."""

    gpus: Count
    latency: Seconds  # of a small message
    bus_bandwidth: BytesPerS  # of a large one, in the NCCL sense
    half_size: Bytes | None = None  # what is moved at half that bandwidth; none: all at the whole
    source: Text


class Measured(Spec):
    gemm: dict[ComputeFormat, GemmMeasurement] = {}
    memory_bandwidth: BandwidthMeasurement | None = None
    all_reduce: tuple[AllReduceMeasurement, ...] = ()


class HardwareSpec(Spec):
    """One file of ``hardware/``."""

    name: Text
    vendor: Text
    architecture: Text
    year: Annotated[int, Strict(), Field(ge=2010, le=2100)]
    aliases: tuple[Text, ...] = ()
    compute: Compute
    memory: Memory
    scale_up: ScaleUp | None = None
    pcie: Pcie | None = None
    board: Board | None = None
    node: Node
    instances: tuple[Text, ...] = ()
    prices: tuple[Price, ...] = ()
    measured: Measured = Field(default_factory=Measured)  # built once, with the whole
    note: Text | None = None

    @model_validator(mode="after")
    def _memory_shrinks(self) -> HardwareSpec:
        memory = self.memory
        if memory.driver and memory.visible and memory.visible > memory.driver:
            raise SpecError("is above `driver`", "memory", "visible")
        return self

    @property
    def visible_memory_bytes(self) -> int:
        """Bytes that CUDA or ROCm shows to a process; see ``visible_memory_is_estimate``."""
        if self.memory.visible is not None:
            return self.memory.visible
        return int((self.memory.driver or self.memory.marketed) * ESTIMATED_VISIBLE_FRACTION)

    @property
    def visible_memory_is_estimate(self) -> bool:
        return self.memory.visible is None

    @property
    def list_price(self) -> Price | None:
        """The price that a plan assumes: the first on-demand one of the file."""
        return self.price_of("on-demand")

    def price_of(self, tier: str) -> Price | None:
        """The first price of a tier, as the file orders them."""
        return next((price for price in self.prices if price.tier == tier), None)
