"""gpt-oss, MiniMax, Llama 4, MiMo-V2 and PhiMoE: experts, each family with its own attention."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.deepseek import balances_by_bias
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
from capplan.specs.hf.stack import Layer, Stack, uniform
from capplan.specs.hf.vision import NOT_COUNTED, llama4_vision


def gpt_oss(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "head_dim", "layer_types", "sliding_window")
    bias = config.flag("attention_bias", True)
    mixer = attention(config, qkv_bias=bias, output_bias=bias, sinks=True)
    mixers = sliding_and_full(mixer, config.count("sliding_window"))
    ffn = moe(config, "num_local_experts", "intermediate_size", bias=True)
    stack = Stack(mixers, {"ffn": ffn}, windowed_layers(config, config.num_layers()))
    stack.dtype = "bf16"  # the checkpoint's; its config does not say
    return stack


def minimax_m2(config: Config, _: Config) -> Stack:
    """Its prediction modules are in no published checkpoint, whatever the config says."""
    config.require("num_key_value_heads", "head_dim", "use_qk_norm", "use_routing_bias")
    config.refuse("shared_intermediate_size", 0)
    config.refuse("attn_type_list", [1] * config.num_layers())
    ffn = moe(
        config, "num_local_experts", "intermediate_size",
        router_bias=config.flag("use_routing_bias", False),
    )  # fmt: skip
    mixer = attention(config, qk_norm=_minimax_qk_norm(config))
    stack = uniform(without_defaults(mixer), without_defaults(ffn), config.num_layers())
    stack.dtype, stack.modules = "bf16", BLOCK_SPARSE_MOE
    return stack


def _minimax_qk_norm(config: Config) -> str | None:
    if not config.flag("use_qk_norm", False):
        return None
    kinds = {"per_layer": "per-layer", "per_head": "per-head"}
    kind = config.data.get("qk_norm_type", "per_layer")
    if not isinstance(kind, str) or kind not in kinds:
        raise config.fault("qk_norm_type", "`qk_norm_type` should be per_layer or per_head")
    return kinds[kind]


def minimax_m3(config: Config, outer: Config) -> Stack:
    """Dense layers first; the others have experts and block-sparse attention with an indexer."""
    num_layers = config.num_layers()
    config.refuse("attention_output_gate", False)
    full = without_defaults(attention(config, qk_norm=_minimax_qk_norm(config)))
    sparse = config.nested("sparse_attention_config")
    if not sparse.flag("use_sparse_attention", True):
        raise sparse.fault("use_sparse_attention", "`use_sparse_attention`: false is not read yet")
    where = sparse.bits("sparse_attention_freq", num_layers)
    if sparse.bits("sparse_disable_index_value", num_layers) != where:
        message = "`sparse_disable_index_value`: index values are not read yet"
        raise sparse.fault("sparse_disable_index_value", message)
    tokens = sparse.count("sparse_topk_blocks") * sparse.count("sparse_block_size")
    heads, dim = sparse.count("sparse_num_index_heads"), sparse.count("sparse_index_dim")
    indexer = {"num_heads": heads, "head_dim": dim}
    experts = moe(
        config, "num_local_experts", "intermediate_size",
        shared_intermediate_size=config.count_or_zero("n_shared_experts", 0)
        * config.count("shared_intermediate_size"),
        router_bias=config.flag("use_routing_bias", False),
    )  # fmt: skip
    has_experts = config.bits("moe_layer_freq", num_layers)
    layers: list[Layer] = [
        ("sparse" if is_sparse else "full", "moe" if is_moe else "dense")
        for is_sparse, is_moe in zip(where, has_experts, strict=True)
    ]
    return Stack(
        {"full": full, "sparse": {**full, "sparse_tokens": tokens, "indexer": indexer}},
        {"dense": dense(config, "dense_intermediate_size"), "moe": without_defaults(experts)},
        layers,
        dict(NOT_COUNTED) if outer.has("vision_config") else {},
        modules={
            **BLOCK_SPARSE_MOE,
            "self_attn.indexer.q_proj": "index_q_proj",
            "self_attn.indexer.k_proj": "index_k_proj",
        },
    )


_LLAMA4 = {
    "interleave_moe_layer_step": 1, "attention_chunk_size": 8192, "no_rope_layer_interval": 4,
}  # fmt: skip
_LLAMA4_MODULES = {
    "dense_ffn": "feed_forward",
    "shared_experts": "feed_forward.shared_expert",
    "experts": "feed_forward.experts.0",
}


def llama4(given: Config, outer: Config) -> Stack:
    """Chunked-local attention where positions are rotated, full attention elsewhere (NoPE)."""
    config = given.with_defaults(**_LLAMA4)
    config.require("num_key_value_heads", "head_dim")
    num_layers = config.num_layers()
    mixer = biased_attention(config)
    chunk = config.count("attention_chunk_size")
    rotated = _rotated(config, num_layers)
    has_experts = _llama4_experts(config, num_layers)
    layers: list[Layer] = [
        ("chunked" if rotated[i] else "full", "moe" if i in has_experts else "dense")
        for i in range(num_layers)
    ]
    experts = moe(
        config, "num_local_experts", "intermediate_size",
        shared_intermediate_size=config.count("intermediate_size"),
    )  # fmt: skip
    ffns = {"dense": dense(config, "intermediate_size_mlp"), "moe": experts}
    fields: dict[str, Any] = llama4_vision(outer, config) if outer is not given else {}
    mixers = {"chunked": {**mixer, "window": chunk, "chunked": True}, "full": mixer}
    return Stack(mixers, ffns, layers, fields, modules=_LLAMA4_MODULES)


def _rotated(config: Config, num_layers: int) -> list[bool]:
    if config.data.get("no_rope_layers"):  # despite its name: 1 where positions are rotated
        return config.bits("no_rope_layers", num_layers)
    period = config.count("no_rope_layer_interval")
    return [(i + 1) % period != 0 for i in range(num_layers)]


def _llama4_experts(config: Config, num_layers: int) -> set[int]:
    """Every `interleave_moe_layer_step`-th layer; a list of them goes before it."""
    if config.has("moe_layers") and config.data["moe_layers"] != []:
        return config.layer_numbers("moe_layers", num_layers)
    step = config.count("interleave_moe_layer_step")
    return set(range(step - 1, num_layers, step))


def mimo_v2(config: Config, _: Config) -> Stack:
    """MiMo-V2-Flash: sliding layers have heads of their own, and sinks."""
    config.require("num_key_value_heads", "head_dim", "v_head_dim", "swa_num_key_value_heads")
    config.require("topk_method")
    config.refuse("n_shared_experts", 0)
    config.refuse("attention_bias", False)
    num_layers = config.num_layers()
    full = attention(
        config, value_head_dim=config.count("v_head_dim"),
        sinks=config.flag("add_full_attention_sink_bias", False),
    )  # fmt: skip
    sliding = attention(
        config, heads="swa_num_attention_heads", kv="swa_num_key_value_heads",
        head_dim="swa_head_dim", value_head_dim=config.count("swa_v_head_dim"),
        window=config.count("sliding_window"),
        sinks=config.flag("add_swa_attention_sink_bias", False),
    )  # fmt: skip
    experts = moe(
        config, "n_routed_experts", "moe_intermediate_size",
        router_bias=balances_by_bias(config),
    )  # fmt: skip
    slides = config.bits("hybrid_layer_pattern", num_layers)
    has_experts = config.bits("moe_layer_freq", num_layers)
    layers: list[Layer] = [
        ("sliding" if window else "full", "moe" if is_moe else "dense")
        for window, is_moe in zip(slides, has_experts, strict=True)
    ]
    missing = ["multi-token-prediction layers (the config does not say how many)"]
    mixers = {"full": without_defaults(full), "sliding": without_defaults(sliding)}
    ffns = {"dense": dense(config), "moe": without_defaults(experts)}
    return Stack(mixers, ffns, layers, {"not_counted": missing})


def phimoe(config: Config, _: Config) -> Stack:
    """Layer norms with biases, biases in attention and on the head, none in the experts."""
    config.require("num_key_value_heads", "attention_bias", "lm_head_bias", "sliding_window")
    mixer = biased_attention(config)
    stack = uniform_windowed(config, mixer, moe(config, "num_local_experts", "intermediate_size"))
    stack.modules = BLOCK_SPARSE_MOE
    stack.fields |= {"norm": "layer", "head_bias": config.flag("lm_head_bias", False)}
    return stack
