"""The mixers of a model's layers: attention in its kinds, and recurrent layers in its place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capplan.specs.fields import Count, Flag, Spec, SpecError


class Indexer(Spec):
    """Chooses the positions that sparse attention reads: light heads that score all of them.

    DeepSeek-V3.2's "lightning indexer" (DSA) on MLA: queries from the query latent, one key a
    token, kept in FP8 with a scale, and a weight a head. MiniMax-M3's on plain attention: queries
    and a key from the hidden state, both normed, no weights; the key is kept in 16 bits.
    """

    num_heads: Count
    head_dim: Count


class Attention(Spec):
    """Softmax attention: MHA, GQA and MQA by the number of KV heads; sliding with a window."""

    kind: Literal["attention"]
    num_heads: Count
    num_kv_heads: Count
    head_dim: Count
    value_head_dim: Count | None = None  # None: as head_dim
    window: Count | None = None  # a token sees this many positions, itself included
    # Chunked-local attention (Llama 4) starts anew every `window` tokens instead of sliding.
    chunked: Flag = False
    qkv_bias: Flag = False
    output_bias: Flag = False
    # One weight of head_dim for all heads; or one for each head's elements (width of q and of k).
    qk_norm: Literal["none", "per-head", "per-layer"] = "none"
    qk_norm_bias: Flag = False
    values_from_keys: Flag = False  # no v_proj: V is K before its norm and rotation (Gemma 4)
    output_gate: Flag = False  # the query projection also makes a gate of its own size
    sinks: Flag = False  # a learned logit a head
    sparse_tokens: Count | None = None  # the most positions that a token attends to
    indexer: Indexer | None = None

    @model_validator(mode="after")
    def _heads_divide(self) -> Attention:
        if self.num_heads % self.num_kv_heads:
            raise SpecError(
                f"{self.num_kv_heads} does not divide `num_heads` {self.num_heads}", "num_kv_heads"
            )
        if self.chunked and self.window is None:
            raise SpecError("needs a `window`: the tokens of a chunk", "chunked")
        if self.values_from_keys and self.value_dim != self.head_dim:
            raise SpecError("differs from `head_dim`, yet values are keys", "value_head_dim")
        _needs_sparse_tokens(self)
        return self

    @property
    def value_dim(self) -> int:
        return self.value_head_dim or self.head_dim


class MultiHeadLatentAttention(Spec):
    """MLA (DeepSeek-V2, arXiv:2405.04434): K and V come from one latent a token."""

    kind: Literal["mla"]
    num_heads: Count
    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    bias: Flag = False  # of the down-projections and the output
    # DSA (DeepSeek-V3.2): a token attends to this many positions. A layer without an indexer of
    # its own takes the choice of the last layer that has one.
    sparse_tokens: Count | None = None
    indexer: Indexer | None = None

    # The latent is one "head" that every rank needs whole.
    num_kv_heads: Literal[1] = 1

    @model_validator(mode="after")
    def _indexer_reads_the_query_latent(self) -> MultiHeadLatentAttention:
        _needs_sparse_tokens(self)
        if self.indexer and self.q_lora_rank is None:
            raise SpecError("needs a `q_lora_rank` to take its queries from", "indexer")
        return self


class CompressedAttention(Spec):
    """DeepSeek-V4's attention: one KV head that is K and V, of a window and of compressed entries.

    Every ``compress_ratio`` tokens leave one entry behind the window. With an indexer (CSA)
    entries overlap, and a token attends to ``sparse_entries`` of them; without (HCA), to all.
    """

    kind: Literal["compressed"]
    num_heads: Count
    head_dim: Count
    q_lora_rank: Count
    output_groups: Count  # heads are projected to output_lora_rank in groups, then joined
    output_lora_rank: Count
    window: Count
    compress_ratio: Count | None = None  # None: the window is all
    sparse_entries: Count | None = None
    indexer: Indexer | None = None

    @model_validator(mode="after")
    def _fields_go_together(self) -> CompressedAttention:
        if self.num_heads % self.output_groups:
            message = f"{self.output_groups} does not divide `num_heads` {self.num_heads}"
            raise SpecError(message, "output_groups")
        if (self.indexer is None) != (self.sparse_entries is None):
            raise SpecError("and `sparse_entries` go together", "indexer")
        if self.indexer and self.compress_ratio is None:
            raise SpecError("needs a `compress_ratio`", "indexer")
        return self


class GatedDeltaNet(Spec):
    """Linear attention with a gated delta rule (arXiv:2412.06464): a state, no growing KV."""

    kind: Literal["gated-deltanet"]
    num_key_heads: Count
    num_value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    state_dtype: Literal["fp32", "bf16"] = "fp32"


class Mamba2(Spec):
    """State-space layer (arXiv:2405.21060): a state, no growing KV."""

    kind: Literal["mamba2"]
    num_heads: Count
    head_dim: Count
    state_size: Count
    num_groups: Count
    conv_kernel: Count
    conv_bias: Flag = True
    projection_bias: Flag = False
    gate_norm: Flag = True
    state_dtype: Literal["fp32", "bf16"] = "bf16"


class Mamba1(Spec):
    """Selective state-space layer (arXiv:2312.00752): a state for each of its channels."""

    kind: Literal["mamba1"]
    inner_size: Count
    state_size: Count
    dt_rank: Count
    conv_kernel: Count
    conv_bias: Flag = True
    projection_bias: Flag = False
    inner_norms: Flag = False  # norms of dt, B and C (Jamba, arXiv:2403.19887)
    state_dtype: Literal["fp32", "bf16"] = "fp32"


AnyMixer = (
    Attention | MultiHeadLatentAttention | CompressedAttention | GatedDeltaNet | Mamba2 | Mamba1
)
Mixer = Annotated[AnyMixer, Field(discriminator="kind")]


def _needs_sparse_tokens(mixer: Attention | MultiHeadLatentAttention) -> None:
    if mixer.indexer and mixer.sparse_tokens is None:
        raise SpecError("chooses positions, yet `sparse_tokens` does not say how many", "indexer")
