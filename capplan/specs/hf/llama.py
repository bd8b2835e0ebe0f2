"""Llama and the many that lay their tensors out like it."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import (
    BLOCK_SPARSE_MOE,
    attention,
    biased_attention,
    dense,
    moe,
    sliding_and_full,
    uniform_windowed,
    windowed_layers,
    without_defaults,
)
from capplan.specs.hf.stack import Stack, uniform
from capplan.specs.hf.vision import pixtral


def llama(config: Config, _: Config) -> Stack:
    mixer = biased_attention(config)
    return uniform(mixer, dense(config, bias=config.flag("mlp_bias", False)), config.num_layers())


def mistral(config: Config, outer: Config) -> Stack:
    config.require("num_key_value_heads", "sliding_window")
    stack = uniform_windowed(config, attention(config), dense(config))
    if outer is not config:
        stack.fields |= pixtral(outer, config)
    return stack


def mistral3(config: Config, outer: Config) -> Stack:
    """Mistral Small 3.1 and later: a Mistral decoder behind a Pixtral vision tower."""
    if config is outer:
        raise outer.fault("text_config", "`text_config` is missing")
    return mistral(config, outer)


def ministral(config: Config, _: Config) -> Stack:
    """Sliding and full layers by `layer_types`."""
    config.require("num_key_value_heads", "sliding_window")
    num_layers = config.num_layers()
    mixers = sliding_and_full(attention(config), config.count("sliding_window"))
    return Stack(mixers, {"ffn": dense(config)}, windowed_layers(config, num_layers))


def mixtral(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads")
    ffn = moe(config, "num_local_experts", "intermediate_size")
    stack = uniform_windowed(config, attention(config), ffn)
    stack.modules = BLOCK_SPARSE_MOE
    return stack


def phi3(config: Config, _: Config) -> Stack:
    """Phi-3 and Phi-4: as Llama with fused projections."""
    config.require("num_key_value_heads", "sliding_window")
    config.refuse("mlp_bias", False)
    return uniform_windowed(config, biased_attention(config), dense(config))


def mimo(config: Config, _: Config) -> Stack:
    """MiMo-7B: Qwen2's decoder and a prediction layer (arXiv:2505.07608, sec. 2.2)."""
    config.require("num_key_value_heads", "head_dim", "attention_bias")
    config.refuse("use_sliding_window", False)
    bias = config.flag("attention_bias", True)
    stack = uniform(attention(config, qkv_bias=bias), dense(config), config.num_layers())
    num = config.count_or_zero("num_nextn_predict_layers", 0)
    hidden = config.count("hidden_size")
    stack.mtp = [("attention", "ffn")] * num
    # Norms of the token and of the hidden state, their projection, and a final norm.
    stack.mtp_extra = num * (2 * hidden * hidden + 3 * hidden)
    return stack


def internlm2(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "bias")
    bias = config.flag("bias", True)
    mixer = without_defaults(attention(config, qkv_bias=bias, output_bias=bias))
    return uniform(mixer, dense(config), config.num_layers())


def baichuan(config: Config, _: Config) -> Stack:
    """Baichuan and Baichuan 2: plain multi-head attention; ALiBi in the 13B."""
    config.refuse("num_key_value_heads", why="is not a field of this class")
    context = "max_position_embeddings" if config.has("max_position_embeddings") else (
        "model_max_length"
    )  # fmt: skip
    return uniform(
        attention(config), dense(config), config.num_layers(),
        max_context_tokens=config.count(context),
    )  # fmt: skip


def stablelm(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "use_qkv_bias")
    qk_norm = "per-layer" if config.flag("qk_layernorm", False) else None
    mixer = attention(config, qkv_bias=config.flag("use_qkv_bias", False), qk_norm=qk_norm)
    placement = "parallel" if config.flag("use_parallel_residual", False) else "pre"
    return uniform(
        without_defaults(mixer), dense(config), config.num_layers(),
        norm="layer", norm_placement=placement,
    )  # fmt: skip


def granite(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads")
    return llama(config, config)


def granite_moe(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "tie_word_embeddings")
    mixer = biased_attention(config)
    return uniform(
        mixer, moe(config, "num_local_experts", "intermediate_size"), config.num_layers()
    )


def cohere(config: Config, _: Config) -> Stack:
    """Command R: one norm a layer, attention and FFN beside each other."""
    config.require("num_key_value_heads")
    qk_norm = "per-layer" if config.flag("use_qk_norm", False) else None
    mixer = biased_attention(config, qk_norm=qk_norm)
    stack = uniform(mixer, dense(config), config.num_layers(), **_COHERE)
    stack.tied_by_default = True
    return stack


_COHERE: dict[str, Any] = {"norm": "layer-without-bias", "norm_placement": "parallel"}


def cohere2(config: Config, _: Config) -> Stack:
    """Command R7B and Command A: three sliding layers, then a full one."""
    config.require("num_key_value_heads", "sliding_window")
    num_layers = config.num_layers()
    mixer = biased_attention(config)
    mixers = sliding_and_full(mixer, config.count("sliding_window"))
    if config.has("layer_types"):
        layers = windowed_layers(config, num_layers)
    else:
        period = config.count("sliding_window_pattern", 4)
        layers = [("sliding" if (i + 1) % period else "full", "ffn") for i in range(num_layers)]
    stack = Stack(mixers, {"ffn": dense(config)}, layers, dict(_COHERE))
    stack.tied_by_default = True
    return stack
