"""The weight tensors of one mixer: attention in its kinds, and the recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.specs.mixers import (
    AnyMixer,
    Attention,
    CompressedAttention,
    GatedDeltaNet,
    Mamba1,
    Mamba2,
    MultiHeadLatentAttention,
)
from capplan.specs.tensor import Shard, Tensor


class _Maker:
    """Makes the tensors of ``count`` equal layers."""

    def __init__(self, part: str, count: int, num_kv_heads: int = 1) -> None:
        self.part = part
        self.count = count
        self.num_kv_heads = num_kv_heads

    def __call__(self, name: str, shape: tuple[int, ...], shard: Shard = "split") -> Tensor:
        return Tensor(
            name, "attention", shape, self.count, self.count, shard, self.num_kv_heads,
            part=self.part,
        )  # fmt: skip


def mixer_tensors(part: str, mixer: AnyMixer, hidden: int, count: int) -> Iterator[Tensor]:
    """The tensors of ``count`` layers of a mixer, by the names of their projections."""
    if isinstance(mixer, Attention):
        yield from _attention(mixer, hidden, _Maker(part, count, mixer.num_kv_heads))
    elif isinstance(mixer, MultiHeadLatentAttention):
        yield from _mla(mixer, hidden, _Maker(part, count))
    elif isinstance(mixer, CompressedAttention):
        yield from _compressed(mixer, hidden, _Maker(part, count))
    elif isinstance(mixer, GatedDeltaNet):
        yield from _gated_deltanet(mixer, hidden, _Maker(part, count))
    elif isinstance(mixer, Mamba2):
        yield from _mamba2(mixer, hidden, _Maker(part, count))
    else:
        yield from _mamba1(mixer, hidden, _Maker(part, count))


def _attention(mixer: Attention, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    query = mixer.num_heads * mixer.head_dim
    key = mixer.num_kv_heads * mixer.head_dim
    value = 0 if mixer.values_from_keys else mixer.num_kv_heads * mixer.value_dim
    out = mixer.num_heads * mixer.value_dim
    gates = 2 if mixer.output_gate else 1
    yield tensor("q_proj", (query * gates, hidden))
    yield tensor("k_proj", (key, hidden), "kv_heads")
    if value:
        yield tensor("v_proj", (value, hidden), "kv_heads")
    yield tensor("o_proj", (hidden, out))
    if mixer.qkv_bias:
        yield tensor("q_proj.bias", (query * gates,))
        yield tensor("kv_proj.bias", (key + value,), "kv_heads")
    if mixer.output_bias:
        yield tensor("o_proj.bias", (hidden,), "replicated")
    if mixer.qk_norm != "none":
        width = 2 * mixer.head_dim if mixer.qk_norm == "per-head" else query + key
        yield tensor("qk_norm", (width * (2 if mixer.qk_norm_bias else 1),), "replicated")
    if mixer.sinks:
        yield tensor("sinks", (mixer.num_heads,))
    if mixer.indexer:
        heads, dim = mixer.indexer.num_heads, mixer.indexer.head_dim
        yield tensor("indexer.q_proj", (heads * dim, hidden))
        yield tensor("indexer.k_proj", (dim, hidden), "replicated")
        yield tensor("indexer.qk_norm", (2 * dim,), "replicated")


def _mla(mixer: MultiHeadLatentAttention, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    query = mixer.num_heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    latent = mixer.kv_lora_rank
    down = latent + mixer.qk_rope_head_dim
    if mixer.q_lora_rank is None:
        yield tensor("q_proj", (query, hidden))
    else:
        yield tensor("q_a_proj", (mixer.q_lora_rank, hidden), "replicated")
        yield tensor("q_a_norm", (mixer.q_lora_rank,), "replicated")
        yield tensor("q_b_proj", (query, mixer.q_lora_rank))
    yield tensor("kv_a_proj", (down, hidden), "replicated")
    yield tensor("kv_a_norm", (latent,), "replicated")
    yield tensor(
        "kv_b_proj", (mixer.num_heads * (mixer.qk_nope_head_dim + mixer.v_head_dim), latent)
    )
    yield tensor("o_proj", (hidden, mixer.num_heads * mixer.v_head_dim))
    if mixer.bias:
        yield tensor("proj.bias", ((mixer.q_lora_rank or 0) + down + hidden,), "replicated")
    if mixer.indexer and mixer.q_lora_rank:
        heads, dim = mixer.indexer.num_heads, mixer.indexer.head_dim
        yield tensor("indexer.q_proj", (heads * dim, mixer.q_lora_rank), "replicated")
        yield tensor("indexer.k_proj", (dim, hidden), "replicated")
        yield tensor("indexer.k_norm", (2 * dim,), "replicated")  # a layer norm, with bias
        yield tensor("indexer.weights_proj", (heads, hidden), "replicated")


def _compressed(mixer: CompressedAttention, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    dim, rank, groups = mixer.head_dim, mixer.q_lora_rank, mixer.output_groups
    joined = groups * mixer.output_lora_rank
    yield tensor("q_a_proj", (rank, hidden), "replicated")
    yield tensor("q_a_norm", (rank,), "replicated")
    yield tensor("q_b_proj", (mixer.num_heads * dim, rank))
    yield tensor("kv_proj", (dim, hidden), "replicated")
    yield tensor("kv_norm", (dim,), "replicated")
    yield tensor("o_a_proj", (joined, mixer.num_heads * dim // groups))
    yield tensor("o_b_proj", (hidden, joined))
    yield tensor("sinks", (mixer.num_heads,))
    if mixer.compress_ratio:
        # Two series where entries overlap; each has values and gates.
        series = 2 if mixer.indexer else 1
        yield from _compressor(tensor, "compressor", mixer.compress_ratio, series, dim, hidden)
    if mixer.indexer and mixer.compress_ratio:
        heads, index_dim = mixer.indexer.num_heads, mixer.indexer.head_dim
        yield tensor("indexer.q_proj", (heads * index_dim, rank), "replicated")
        yield tensor("indexer.weights_proj", (heads, hidden), "replicated")
        yield from _compressor(tensor, "indexer", mixer.compress_ratio, 2, index_dim, hidden)


def _compressor(
    tensor: _Maker, name: str, ratio: int, series: int, dim: int, hidden: int
) -> Iterator[Tensor]:
    yield tensor(f"{name}.kv_gate_proj", (2 * series * dim, hidden), "replicated")
    yield tensor(f"{name}.position_bias", (ratio * series * dim,), "replicated")
    yield tensor(f"{name}.norm", (dim,), "replicated")


def _gated_deltanet(mixer: GatedDeltaNet, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    key = mixer.num_key_heads * mixer.key_head_dim
    value = mixer.num_value_heads * mixer.value_head_dim
    yield tensor("qkvz_proj", (2 * key + 2 * value, hidden))
    yield tensor("beta_alpha_proj", (2 * mixer.num_value_heads, hidden))
    yield tensor("conv1d", ((2 * key + value) * mixer.conv_kernel,))
    yield tensor("dt_bias, A_log", (2 * mixer.num_value_heads,))
    yield tensor("gate_norm", (mixer.value_head_dim,), "replicated")
    yield tensor("out_proj", (hidden, value))


def _mamba2(mixer: Mamba2, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    inner = mixer.num_heads * mixer.head_dim
    conv = inner + 2 * mixer.num_groups * mixer.state_size
    yield tensor("in_proj", (inner + conv + mixer.num_heads, hidden))
    yield tensor("conv1d", (conv * (mixer.conv_kernel + int(mixer.conv_bias)),))
    yield tensor("dt_bias, A_log, D", (3 * mixer.num_heads,))
    if mixer.gate_norm:
        yield tensor("gate_norm", (inner,))
    yield tensor("out_proj", (hidden, inner))
    if mixer.projection_bias:
        yield tensor("proj.bias", (inner + conv + mixer.num_heads + hidden,))


def _mamba1(mixer: Mamba1, hidden: int, tensor: _Maker) -> Iterator[Tensor]:
    inner, state, rank = mixer.inner_size, mixer.state_size, mixer.dt_rank
    yield tensor("in_proj", (2 * inner, hidden))
    yield tensor("conv1d", (inner * (mixer.conv_kernel + int(mixer.conv_bias)),))
    yield tensor("x_proj", (rank + 2 * state, inner))
    yield tensor("dt_proj", (inner, rank))
    yield tensor("dt_proj.bias", (inner,))
    yield tensor("A_log, D", (inner * (state + 1),))
    yield tensor("out_proj", (hidden, inner))
    if mixer.projection_bias:
        yield tensor("proj.bias", (2 * inner + hidden,))
    if mixer.inner_norms:
        yield tensor("dt, B, C norms", (rank + 2 * state,), "replicated")
