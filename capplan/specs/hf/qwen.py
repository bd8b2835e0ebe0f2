"""Qwen 1.5 to 3.6: dense, experts, hybrids with linear attention, and their vision towers."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import attention, biased_attention, dense, moe
from capplan.specs.hf.stack import Layer, Part, Stack, uniform
from capplan.specs.hf.vision import qwen2_5_vl as qwen2_5_vision
from capplan.specs.hf.vision import qwen3_vl as qwen3_vision

_SHARED = {"shared_experts": "mlp.shared_expert"}
_NEXT = {
    "linear_attn.qkvz_proj": "in_proj_qkvz",
    "linear_attn.beta_alpha_proj": "in_proj_ba",
}
_LINEAR, _FULL = "linear_attention", "full_attention"


def _refuse_window(config: Config) -> None:
    """Qwen configs carry a `sliding_window` that is off unless `use_sliding_window` is true."""
    if config.flag("use_sliding_window", False):
        raise config.fault("use_sliding_window", "sliding windows of Qwen models are not read yet")


def qwen2(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads")
    _refuse_window(config)
    return uniform(attention(config, qkv_bias=True), dense(config), config.num_layers())


def qwen2_5_vl(config: Config, outer: Config) -> Stack:
    stack = qwen2(config, outer)
    stack.fields |= qwen2_5_vision(outer, config)
    return stack


def qwen3(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "head_dim")
    _refuse_window(config)
    num_layers = config.num_layers()
    return uniform(_attention3(config), dense(config), num_layers)


def _attention3(config: Config) -> Part:
    return biased_attention(config, qk_norm="per-head")


def qwen2_moe(config: Config, _: Config) -> Stack:
    mixer = attention(config, qkv_bias=config.flag("qkv_bias", True))
    return _with_experts(config, mixer, **_shared_expert(config))


def qwen3_moe(config: Config, _: Config) -> Stack:
    return _with_experts(config, _attention3(config))


def _shared_expert(config: Config) -> dict[str, Any]:
    width = config.count("shared_expert_intermediate_size")
    return {"shared_intermediate_size": width, "shared_expert_gate": True}


def _experts(config: Config, **more: Any) -> Part:
    return moe(config, "num_experts", "moe_intermediate_size", **more)


def _with_experts(config: Config, mixer: Part, **more: Any) -> Stack:
    """Every `decoder_sparse_step`-th layer has experts, but for `mlp_only_layers`."""
    config.require("num_key_value_heads")
    _refuse_window(config)
    num_layers = config.num_layers()
    step = config.count("decoder_sparse_step", 1)
    only_dense = config.layer_numbers("mlp_only_layers", num_layers)
    sparse = [(i + 1) % step == 0 and i not in only_dense for i in range(num_layers)]
    experts = _experts(config, **more)
    if all(sparse):
        stack = uniform(mixer, experts, num_layers)
        stack.modules = _SHARED
        return stack
    ffns = {"dense": dense(config), "moe": experts}
    layers: list[Layer] = [("attention", "moe" if is_sparse else "dense") for is_sparse in sparse]
    return Stack({"attention": mixer}, ffns, layers, modules=_SHARED)


def qwen3_next(config: Config, _: Config) -> Stack:
    """Three layers of gated delta nets, then one of gated attention."""
    stack = _hybrid(config, _experts(config, **_shared_expert(config)))
    config.refuse("mlp_only_layers", [])
    config.refuse("decoder_sparse_step", 1)
    stack.modules = {**_SHARED, **_NEXT}
    stack.fields["not_counted"] = ["multi-token-prediction layers (the config does not say)"]
    return stack


def qwen3_5(config: Config, outer: Config) -> Stack:
    return _with_vision_and_mtp(_hybrid(config, dense(config)), config, outer)


def qwen3_5_moe(config: Config, outer: Config) -> Stack:
    config.refuse("mlp_only_layers", [])
    experts = _experts(config, **_shared_expert(config))
    return _with_vision_and_mtp(_hybrid(config, experts), config, outer)


def _hybrid(config: Config, ffn: Part) -> Stack:
    config.require("num_key_value_heads", "head_dim")
    config.refuse("attn_output_gate", True)
    bias = config.flag("attention_bias", False)
    full = attention(config, qk_norm="per-head", output_gate=True)
    if bias:
        full |= {"qkv_bias": True, "output_bias": True}
    num_layers = config.num_layers()
    if config.has("layer_types"):
        kinds = config.words("layer_types", num_layers, _LINEAR, _FULL)
    else:
        period = config.count("full_attention_interval", 4)
        kinds = [_LINEAR if (i + 1) % period else _FULL for i in range(num_layers)]
    layers: list[Layer] = [("linear" if k == _LINEAR else "attention", "ffn") for k in kinds]
    mixers = {"linear": _delta_net(config), "attention": full}
    return Stack(mixers, {"ffn": ffn}, layers, modules=_SHARED)


def _delta_net(config: Config) -> Part:
    heads, keys = config.count("linear_num_value_heads"), config.count("linear_num_key_heads")
    if heads % keys:
        message = f"`linear_num_key_heads` {keys:,} does not divide `linear_num_value_heads`"
        raise config.fault("linear_num_key_heads", f"{message} {heads:,}")
    return {
        "kind": "gated-deltanet",
        "num_key_heads": keys,
        "num_value_heads": heads,
        "key_head_dim": config.count("linear_key_head_dim"),
        "value_head_dim": config.count("linear_value_head_dim"),
        "conv_kernel": config.count("linear_conv_kernel_dim"),
    }


def _with_vision_and_mtp(stack: Stack, config: Config, outer: Config) -> Stack:
    if outer is not config:
        stack.fields |= qwen3_vision(outer, config)
    config.refuse("mtp_use_dedicated_embeddings", False)
    num = config.count_or_zero("mtp_num_hidden_layers", 0)
    hidden = config.count("hidden_size")
    stack.mtp = [("attention", "ffn")] * num
    # The projection of both inputs, their norms, and a final norm, once for all layers.
    stack.mtp_extra = 2 * hidden * hidden + 3 * hidden if num else 0
    return stack


def qwen3_vl(config: Config, outer: Config) -> Stack:
    stack = qwen3(config, outer)
    stack.fields |= qwen3_vision(outer, config)
    return stack


def qwen3_vl_moe(config: Config, outer: Config) -> Stack:
    stack = qwen3_moe(config, outer)
    stack.fields |= qwen3_vision(outer, config)
    return stack
