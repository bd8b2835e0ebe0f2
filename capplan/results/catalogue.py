"""`capplan hardware` and `capplan models`: facts about one entry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PriceFacts:
    """One dated price."""

    provider: str
    instance: str | None
    region: str | None
    tier: str
    usd_per_gpu_hour: float
    as_of: str


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """One accelerator of the catalogue; peaks are dense, the ridge is at 16 bits."""

    id: str
    name: str
    vendor: str
    architecture: str
    year: int
    aliases: tuple[str, ...]
    peak_flops_per_s: dict[str, float]
    marketed_memory_bytes: int
    driver_memory_bytes: int | None
    visible_memory_bytes: int
    visible_memory_is_estimate: bool
    memory_type: str
    bandwidth_bytes_per_s: float
    l2_bytes: int | None
    ridge_flop_per_byte: float | None
    scale_up: str | None
    scale_up_bytes_per_s: float | None
    scale_up_domain_gpus: int | None
    pcie_bytes_per_s: float | None
    tdp_w: float | None
    gpus_per_node: int
    network_bytes_per_s: float | None
    instances: tuple[str, ...]
    usd_per_gpu_hour: float | None
    prices: tuple[PriceFacts, ...]
    gemm_fraction: dict[str, float]
    bandwidth_fraction: float | None
    notes: tuple[str, ...]
    sources: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """How many layers of one kind."""

    num_layers: int
    mixer: str | None
    ffn: str | None


@dataclass(frozen=True, slots=True)
class TensorGroupFacts:
    """Tensors that serve one purpose."""

    group: str
    num_params: int
    num_params_active: int
    weight_bytes: int
    weight_format: str


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model of the catalogue."""

    id: str
    name: str
    aliases: tuple[str, ...]
    sources: tuple[str, ...]
    num_params_total: int
    num_params_active: int
    num_params_mtp: int  # beside the total: loaded by speculative decoding only
    not_counted: tuple[str, ...]  # parts of the checkpoint in none of the sizes
    weight_format: str
    weight_bytes: int
    kv_bytes_per_token: float
    kv_dtype: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    max_context_tokens: int
    layers: tuple[LayerFacts, ...]
    groups: tuple[TensorGroupFacts, ...]
    note: str | None


@dataclass(frozen=True, slots=True)
class ExampleFacts:
    """A plan that comes with the package."""

    id: str
    title: str
    note: str
    model: str
    hardware: str
    variants: tuple[str, ...]
