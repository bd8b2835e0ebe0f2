"""Gemma 1 to 4, with the vision towers of 3 and 4."""

from __future__ import annotations

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import (
    attention,
    biased_attention,
    dense,
    moe,
    sliding_and_full,
    windowed_layers,
    without_defaults,
)
from capplan.specs.hf.stack import Part, Stack, uniform
from capplan.specs.hf.vision import gemma4_vision, siglip

# What Gemma3TextConfig takes where a field is absent: the files of Gemma 3 leave much out.
_GEMMA3 = {
    "vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 131_072, "sliding_window_pattern": 6,
}  # fmt: skip


def gemma(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "head_dim")
    return _tied(uniform(biased_attention(config), dense(config), config.num_layers()))


def gemma2(config: Config, _: Config) -> Stack:
    """Sliding and full layers in turn, the first one slides."""
    config.require("num_key_value_heads", "head_dim", "sliding_window")
    num_layers = config.num_layers()
    if config.has("layer_types"):
        layers = windowed_layers(config, num_layers)
    else:
        layers = [("full" if i % 2 else "sliding", "ffn") for i in range(num_layers)]
    mixers = sliding_and_full(biased_attention(config), config.count("sliding_window"))
    return _tied(Stack(mixers, {"ffn": dense(config)}, layers, {"norm_placement": "sandwich"}))


def gemma3(given: Config, outer: Config) -> Stack:
    config = given.with_defaults(**_GEMMA3)
    num_layers = config.num_layers()
    if config.has("layer_types"):
        layers = windowed_layers(config, num_layers)
    else:
        period = config.count("sliding_window_pattern")
        layers = [("sliding" if (i + 1) % period else "full", "ffn") for i in range(num_layers)]
    mixer = biased_attention(config, qk_norm="per-head")
    mixers = sliding_and_full(mixer, config.count("sliding_window"))
    stack = _tied(Stack(mixers, {"ffn": dense(config)}, layers, {"norm_placement": "sandwich"}))
    for name, key in (
        ("max_context_tokens", "max_position_embeddings"),
        ("vocab_size", "vocab_size"),
    ):
        stack.fields[name] = config.count(key)
    if outer is not given:
        stack.fields |= siglip(outer, config)
    return stack


def gemma4(config: Config, outer: Config) -> Stack:
    """Full layers have heads of their own size and no v_proj; all layers may have experts."""
    for name in ("num_kv_shared_layers", "hidden_size_per_layer_input"):
        config.refuse(name, 0, why="(Gemma 4 E2B, E4B) is not read yet")
    config.refuse("use_double_wide_mlp", False)
    config.require("num_key_value_heads", "head_dim", "layer_types", "sliding_window")
    sliding = biased_attention(config, qk_norm="per-head", window=config.count("sliding_window"))
    same = config.flag("attention_k_eq_v", False)
    full = attention(
        config, head_dim="global_head_dim", qk_norm="per-head",
        kv="num_global_key_value_heads" if same else "num_key_value_heads",
        values_from_keys=same,
    )  # fmt: skip
    layers = windowed_layers(config, config.num_layers())
    fields = {"norm_placement": "sandwich", "layer_scalar": True}
    mixers = {"sliding": sliding, "full": without_defaults(full)}
    stack = _tied(Stack(mixers, {"ffn": _ffn4(config)}, layers, fields))
    stack.modules = {"shared_experts": "mlp", "experts": "experts.0"}
    if outer is not config:
        stack.fields |= gemma4_vision(outer, config)
    return stack


def _ffn4(config: Config) -> Part:
    if not config.flag("enable_moe_block", False):
        return dense(config)
    return moe(
        config, "num_experts", "moe_intermediate_size", "top_k_experts",
        shared_intermediate_size=config.count("intermediate_size"),
        router_scale=True, branch_norms=True,
    )  # fmt: skip


def _tied(stack: Stack) -> Stack:
    stack.tied_by_default = True
    return stack
