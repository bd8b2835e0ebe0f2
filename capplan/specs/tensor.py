"""One weight tensor: its shape, what it serves, and how tensor parallelism lays it out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from capplan.formulas.kv import kv_heads_per_gpu

Group = Literal[
    "embedding", "attention", "dense_ffn", "router", "shared_experts", "experts", "norm",
    "lm_head", "residual_streams", "extra",
]  # fmt: skip
# How tensor parallelism lays a tensor out: split evenly, split by KV heads, or on every rank.
Shard = Literal["split", "kv_heads", "replicated"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """``copies`` tensors of one shape; a matrix is (outputs, inputs).

    ``active_copies`` are those that one token passes. ``num_experts`` > 0 marks routed experts,
    of which a batch reads those that it touches.
    """

    name: str
    group: Group
    shape: tuple[int, ...]
    copies: int
    active_copies: int
    shard: Shard = "split"
    num_kv_heads: int = 1
    num_experts: int = 0
    experts_per_token: int = 0
    part: str = ""  # the mixer or ffn that it belongs to, by its name in the model's file

    @property
    def num_params(self) -> int:
        return prod(self.shape) * self.copies

    @property
    def num_active_params(self) -> int:
        return prod(self.shape) * self.active_copies

    @property
    def is_matrix(self) -> bool:
        return len(self.shape) == 2

    def shard_fraction(self, tp: int) -> float:
        """Share of the tensor that one of ``tp`` ranks holds."""
        if self.shard == "replicated":
            return 1.0
        if self.shard == "kv_heads":
            return kv_heads_per_gpu(self.num_kv_heads, tp) / self.num_kv_heads
        return 1 / tp
