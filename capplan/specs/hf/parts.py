"""Mixers and ffns that many families share, from the fields that they share."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.stack import Layer, Part, Stack, uniform

# Module names of Mixtral and of those who took them over.
BLOCK_SPARSE_MOE = {
    "experts": "block_sparse_moe.experts.0",
    "shared_experts": "block_sparse_moe.shared_experts",
    "block_sparse_moe.experts.0.gate_proj": "w1",
    "block_sparse_moe.experts.0.up_proj": "w3",
    "block_sparse_moe.experts.0.down_proj": "w2",
}
SLIDING, FULL = "sliding_attention", "full_attention"


def attention(
    config: Config, *, heads: str = "num_attention_heads", kv: str = "num_key_value_heads",
    head_dim: str = "head_dim", **more: Any,
) -> Part:  # fmt: skip
    """Grouped-query attention; without the number of KV heads, one a query head."""
    num_heads = config.count(heads)
    num_kv_heads = config.count(kv, num_heads)
    if num_heads % num_kv_heads:
        raise config.fault(
            kv, f"`{kv}` {num_kv_heads:,} does not divide `{heads}` {num_heads:,}"
        )  # fmt: skip
    dim = config.count(head_dim) if config.has(head_dim) else derived_head_dim(config, heads)
    return {
        "kind": "attention", "num_heads": num_heads, "num_kv_heads": num_kv_heads, "head_dim": dim,
        **more,
    }  # fmt: skip


def biased_attention(config: Config, **more: Any) -> Part:
    """Attention whose projections all have biases, or none, as `attention_bias` says."""
    bias = config.flag("attention_bias", False)
    return without_defaults(attention(config, qkv_bias=bias, output_bias=bias, **more))


def derived_head_dim(
    config: Config, heads: str = "num_attention_heads", hidden: str = "hidden_size"
) -> int:
    """The hidden size shared out evenly over the heads."""
    num_heads, size = config.count(heads), config.count(hidden)
    if size % num_heads:
        raise config.fault(
            heads,
            f"`{hidden}` {size} is not a multiple of `{heads}` {num_heads}, "
            "and there is no `head_dim`",
        )
    return size // num_heads


def dense(config: Config, width: str = "intermediate_size", **more: Any) -> Part:
    return {"kind": "dense", "intermediate_size": config.count(width), **more}


def moe(
    config: Config, experts: str, width: str, top_k: str = "num_experts_per_tok", **more: Any
) -> Part:
    return {
        "kind": "moe",
        "num_experts": config.count(experts),
        "experts_per_token": config.top_k(experts, top_k),
        "intermediate_size": config.count(width),
        **more,
    }


def without_defaults(part: Part) -> Part:
    """A part as people write it: what is off is left out."""
    return {key: value for key, value in part.items() if value not in (False, None)}


def sliding_and_full(part: Part, window: int) -> dict[str, Part]:
    """Two mixers that differ in their window only."""
    return {"sliding": {**part, "window": window}, "full": part}


def windowed_layers(config: Config, num_layers: int, ffn: str = "ffn") -> list[Layer]:
    """The layers by `layer_types`."""
    kinds = config.words("layer_types", num_layers, SLIDING, FULL)
    return [("sliding" if kind == SLIDING else "full", ffn) for kind in kinds]


def uniform_windowed(config: Config, mixer: Part, ffn: Part) -> Stack:
    """One kind of layer, with a window where `sliding_window` says so."""
    if config.has("sliding_window"):
        mixer = {**mixer, "window": config.count("sliding_window")}
    return uniform(mixer, ffn, config.num_layers())
