"""Every weight tensor of a model, by shape: parameters, bytes, work and shards all follow.

One inventory answers "how many parameters", "how many bytes", "how much work a token is" and
"what does one rank hold", so these can never disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from capplan.formulas.kv import kv_heads_per_gpu
from capplan.formulas.number_formats import FORMATS
from capplan.specs.model import (
    Attention,
    DenseFFN,
    GatedDeltaNet,
    Mamba2,
    ModelSpec,
    MoEFFN,
    MultiHeadLatentAttention,
)

Group = Literal[
    "embedding", "attention", "dense_ffn", "router", "shared_experts", "experts", "norm",
    "lm_head", "extra",
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


@lru_cache(maxsize=64)
def tensors_of(model: ModelSpec) -> tuple[Tensor, ...]:
    """The inventory, in the order of the forward pass."""
    return tuple(_inventory(model))


def num_params_total(model: ModelSpec) -> int:
    """Parameters that serving loads: everything but multi-token-prediction layers."""
    return sum(tensor.num_params for tensor in tensors_of(model))


def num_params_active(model: ModelSpec) -> int:
    """Parameters that one decoded token passes.

    Attention, dense FFN, router, shared and top-k experts, norms, LM head; not the input
    embedding, of which one row is read (unless it is also the head).
    """
    return sum(tensor.num_active_params for tensor in tensors_of(model))


def tensor_format(tensor: Tensor, model: ModelSpec, dtype: str | None = None) -> str:
    """The number format of a tensor as stored, or when the weights are converted to ``dtype``.

    A quantised dtype reaches the matrices of attention and FFN only, as engines do it:
    embedding, head, norms and router stay as they are.
    """
    stored = model.weights.quantization
    if dtype is not None and dtype != model.stored_format:
        if FORMATS[dtype].bits >= 16:
            return dtype
        quantised = tensor.group in ("attention", "dense_ffn", "shared_experts", "experts")
        return dtype if quantised and tensor.is_matrix else model.weights.dtype
    if stored is not None and tensor.group in stored.groups and tensor.is_matrix:
        return stored.format
    return model.weights.dtype


def tensor_bytes(tensor: Tensor, number_format: str) -> int:
    """Bytes of all copies of a tensor, scales included."""
    rows = tensor.shape[0] if tensor.is_matrix else 1
    columns = tensor.shape[-1]
    return tensor.copies * FORMATS[number_format].weight_bytes(rows, columns)


def weight_bytes(model: ModelSpec, dtype: str | None = None) -> int:
    """Bytes of all weights, as stored or converted to ``dtype``."""
    return sum(
        tensor_bytes(tensor, tensor_format(tensor, model, dtype)) for tensor in tensors_of(model)
    )


def weight_bytes_per_gpu(model: ModelSpec, tp: int, dtype: str | None = None) -> int:
    """Bytes of weights on each of ``tp`` ranks."""
    total = sum(
        tensor_bytes(tensor, tensor_format(tensor, model, dtype)) * tensor.shard_fraction(tp)
        for tensor in tensors_of(model)
    )
    return round(total)


def _inventory(model: ModelSpec) -> Iterator[Tensor]:
    hidden = model.hidden_size
    head_name = "embedding (also LM head)" if model.tied_embeddings else "embedding"
    table = (model.vocab_size, hidden)
    yield Tensor(head_name, "embedding", table, 1, int(model.tied_embeddings))
    if model.learned_positions:
        yield Tensor("positions", "embedding", (model.learned_positions, hidden), 1, 0)
    for name, count in model.mixer_counts.items():
        yield from _mixer(model.mixers[name], hidden, count)
    for name, count in model.ffn_counts.items():
        yield from _ffn(model.ffns[name], hidden, count)
    yield from _norms(model)
    if not model.tied_embeddings:
        yield Tensor("lm_head", "lm_head", table, 1, 1)
    for name, count in model.extra_parameters.items():
        yield Tensor(name, "extra", (count,), 1, 0, "replicated")


def _norms(model: ModelSpec) -> Iterator[Tensor]:
    width = {"rms": 1, "layer": 2, "layer-without-bias": 1, "none": 0}[model.norm]
    if not width:
        return
    halves = sum(model.mixer_counts.values()) + sum(model.ffn_counts.values())
    copies = {"pre": halves, "sandwich": 2 * halves, "parallel": model.num_layers}
    shape = (width * model.hidden_size,)
    num = copies[model.norm_placement]
    yield Tensor("layer norms", "norm", shape, num, num, "replicated")
    yield Tensor("final norm", "norm", shape, 1, 1, "replicated")
    if model.embedding_norm:
        yield Tensor("embedding norm", "norm", shape, 1, 1, "replicated")


def _mixer(
    mixer: Attention | MultiHeadLatentAttention | GatedDeltaNet | Mamba2, hidden: int, count: int
) -> Iterator[Tensor]:
    if isinstance(mixer, Attention):
        return _attention(mixer, hidden, count)
    if isinstance(mixer, MultiHeadLatentAttention):
        return _mla(mixer, hidden, count)
    if isinstance(mixer, GatedDeltaNet):
        return _gated_deltanet(mixer, hidden, count)
    return _mamba2(mixer, hidden, count)


def _attention(mixer: Attention, hidden: int, count: int) -> Iterator[Tensor]:
    query = mixer.num_heads * mixer.head_dim
    key = mixer.num_kv_heads * mixer.head_dim
    value = mixer.num_kv_heads * mixer.value_dim
    out = mixer.num_heads * mixer.value_dim
    gates = 2 if mixer.output_gate else 1

    def tensor(name: str, shape: tuple[int, ...], shard: Shard = "split") -> Tensor:
        return Tensor(name, "attention", shape, count, count, shard, mixer.num_kv_heads)

    yield tensor("q_proj", (query * gates, hidden))
    yield tensor("k_proj", (key, hidden), "kv_heads")
    yield tensor("v_proj", (value, hidden), "kv_heads")
    yield tensor("o_proj", (hidden, out))
    if mixer.qkv_bias:
        yield tensor("q_proj.bias", (query * gates,))
        yield tensor("kv_proj.bias", (key + value,), "kv_heads")
    if mixer.output_bias:
        yield tensor("o_proj.bias", (hidden,), "replicated")
    if mixer.qk_norm == "per-head":
        yield tensor("qk_norm", (2 * mixer.head_dim,), "replicated")
    if mixer.qk_norm == "per-layer":
        yield tensor("qk_norm", (query + key,), "replicated")
    if mixer.sinks:
        yield tensor("sinks", (mixer.num_heads,))


def _mla(mixer: MultiHeadLatentAttention, hidden: int, count: int) -> Iterator[Tensor]:
    qk = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim
    query = mixer.num_heads * qk
    latent = mixer.kv_lora_rank

    def tensor(name: str, shape: tuple[int, ...], shard: Shard = "split") -> Tensor:
        return Tensor(name, "attention", shape, count, count, shard)

    if mixer.q_lora_rank is None:
        yield tensor("q_proj", (query, hidden))
    else:
        yield tensor("q_a_proj", (mixer.q_lora_rank, hidden), "replicated")
        yield tensor("q_a_norm", (mixer.q_lora_rank,), "replicated")
        yield tensor("q_b_proj", (query, mixer.q_lora_rank))
    yield tensor("kv_a_proj", (latent + mixer.qk_rope_head_dim, hidden), "replicated")
    yield tensor("kv_a_norm", (latent,), "replicated")
    yield tensor(
        "kv_b_proj", (mixer.num_heads * (mixer.qk_nope_head_dim + mixer.v_head_dim), latent)
    )
    yield tensor("o_proj", (hidden, mixer.num_heads * mixer.v_head_dim))


def _gated_deltanet(mixer: GatedDeltaNet, hidden: int, count: int) -> Iterator[Tensor]:
    key = mixer.num_key_heads * mixer.key_head_dim
    value = mixer.num_value_heads * mixer.value_head_dim

    def tensor(name: str, shape: tuple[int, ...]) -> Tensor:
        return Tensor(name, "attention", shape, count, count)

    yield tensor("qkvz_proj", (2 * key + 2 * value, hidden))
    yield tensor("beta_alpha_proj", (2 * mixer.num_value_heads, hidden))
    yield tensor("conv1d", ((2 * key + value) * mixer.conv_kernel,))
    yield tensor("dt_bias, A_log", (2 * mixer.num_value_heads,))
    yield Tensor("gate_norm", "attention", (mixer.value_head_dim,), count, count, "replicated")
    yield tensor("out_proj", (hidden, value))


def _mamba2(mixer: Mamba2, hidden: int, count: int) -> Iterator[Tensor]:
    inner = mixer.num_heads * mixer.head_dim
    conv = inner + 2 * mixer.num_groups * mixer.state_size

    def tensor(name: str, shape: tuple[int, ...]) -> Tensor:
        return Tensor(name, "attention", shape, count, count)

    yield tensor("in_proj", (inner + conv + mixer.num_heads, hidden))
    yield tensor("conv1d", (conv * (mixer.conv_kernel + int(mixer.conv_bias)),))
    yield tensor("dt_bias, A_log, D", (3 * mixer.num_heads,))
    yield tensor("gate_norm", (inner,))
    yield tensor("out_proj", (hidden, inner))
    if mixer.projection_bias:
        yield tensor("proj.bias", (inner + conv + mixer.num_heads + hidden,))


def _ffn(ffn: DenseFFN | MoEFFN, hidden: int, count: int) -> Iterator[Tensor]:
    if isinstance(ffn, DenseFFN):
        yield from _mlp("dense_ffn", ffn.intermediate_size, hidden, count, ffn.gated, ffn.bias)
        return
    routed = (ffn.num_experts, ffn.experts_per_token)
    yield Tensor("router", "router", (ffn.num_experts, hidden), count, count, "replicated")
    if ffn.bias or ffn.router_bias:
        yield Tensor("router.bias", "router", (ffn.num_experts,), count, count, "replicated")
    shared = ffn.shared_intermediate_size
    if shared:
        yield from _mlp("shared_experts", shared, hidden, count, ffn.gated, ffn.bias)
    if ffn.shared_expert_gate:
        shape = (1, hidden)
        yield Tensor("shared_expert_gate", "router", shape, count, count, "replicated")
    yield from _mlp("experts", ffn.intermediate_size, hidden, count, ffn.gated, ffn.bias, routed)


def _mlp(
    group: Literal["dense_ffn", "shared_experts", "experts"],
    width: int,
    hidden: int,
    count: int,
    gated: bool,
    bias: bool,
    routed: tuple[int, int] = (0, 0),
) -> Iterator[Tensor]:
    num_experts, top_k = routed
    copies, active = (count * num_experts, count * top_k) if num_experts else (count, count)

    def tensor(name: str, shape: tuple[int, ...], shard: Shard = "split") -> Tensor:
        return Tensor(
            f"{group}.{name}", group, shape, copies, active, shard,
            num_experts=num_experts, experts_per_token=top_k,
        )  # fmt: skip

    if gated:
        yield tensor("gate_proj", (width, hidden))
    yield tensor("up_proj", (width, hidden))
    yield tensor("down_proj", (hidden, width))
    if bias:
        yield tensor("up_proj.bias", ((2 if gated else 1) * width,))
        yield tensor("down_proj.bias", (hidden,), "replicated")
