"""The weight tensors of one FFN: dense, or routed and shared experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from capplan.specs.ffns import DenseFFN, MoEFFN
from capplan.specs.tensor import Shard, Tensor


def ffn_tensors(part: str, ffn: DenseFFN | MoEFFN, hidden: int, count: int) -> Iterator[Tensor]:
    """The tensors of ``count`` layers of an FFN."""
    if isinstance(ffn, DenseFFN):
        mlp = _Mlp(part, "dense_ffn", ffn.intermediate_size, hidden, ffn.gated, ffn.bias)
        yield from mlp.tensors(count)
    else:
        yield from _moe(part, ffn, hidden, count)


def _moe(part: str, ffn: MoEFFN, hidden: int, count: int) -> Iterator[Tensor]:
    def router(name: str, shape: tuple[int, ...]) -> Tensor:
        return Tensor(name, "router", shape, count, count, "replicated", part=part)

    yield router("router", (ffn.num_experts, hidden))
    if ffn.bias or ffn.router_bias:
        yield router("router.bias", (ffn.num_experts,))
    if ffn.hash_table_tokens:
        entries = (ffn.hash_table_tokens * ffn.experts_per_token,)
        yield Tensor("router.table", "router", entries, count, 0, "replicated", part=part)
    if ffn.router_scale:
        yield router("router.scales", (hidden + ffn.num_experts,))
    shared = ffn.shared_intermediate_size
    if shared:
        mlp = _Mlp(part, "shared_experts", shared, hidden, ffn.gated, ffn.bias)
        yield from mlp.tensors(count)
    if ffn.shared_expert_gate:
        yield router("shared_expert_gate", (1, hidden))
    if ffn.branch_norms:
        norms = (3 * hidden,)
        yield Tensor("branch norms", "norm", norms, count, count, "replicated", part=part)
    latent = ffn.latent_size
    if latent:
        # Every token passes them, as it does the shared experts; each rank holds them whole.
        for name, shape in (("down", (latent, hidden)), ("up", (hidden, latent))):
            yield Tensor(
                f"latent_{name}_proj", "shared_experts", shape, count, count, "replicated",
                part=part,
            )  # fmt: skip
    mlp = _Mlp(part, "experts", ffn.intermediate_size, latent or hidden, ffn.gated, ffn.bias)
    yield from mlp.tensors(count, ffn.num_experts, ffn.experts_per_token)


@dataclass(frozen=True, slots=True)
class _Mlp:
    """Up (and gate) and down projections between ``outer`` and ``width`` elements."""

    part: str
    group: Literal["dense_ffn", "shared_experts", "experts"]
    width: int
    outer: int
    gated: bool
    bias: bool

    def tensors(self, count: int, num_experts: int = 0, top_k: int = 0) -> Iterator[Tensor]:
        copies, active = (count * num_experts, count * top_k) if num_experts else (count, count)

        def tensor(name: str, shape: tuple[int, ...], shard: Shard = "split") -> Tensor:
            return Tensor(
                f"{self.group}.{name}", self.group, shape, copies, active, shard,
                num_experts=num_experts, experts_per_token=top_k, part=self.part,
            )  # fmt: skip

        if self.gated:
            yield tensor("gate_proj", (self.width, self.outer))
        yield tensor("up_proj", (self.width, self.outer))
        yield tensor("down_proj", (self.outer, self.width))
        if self.bias:
            yield tensor("up_proj.bias", ((2 if self.gated else 1) * self.width,))
            yield tensor("down_proj.bias", (self.outer,), "replicated")
