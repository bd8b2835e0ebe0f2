"""GLM-4 to 4.7, and the ChatGLM class of the older files."""

from __future__ import annotations

from capplan.specs.hf.config import Config
from capplan.specs.hf.deepseek import deepseek_v3, experts
from capplan.specs.hf.mtp import deepseek_extra
from capplan.specs.hf.parts import attention, dense, without_defaults
from capplan.specs.hf.stack import Layer, Stack, uniform


def glm(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "head_dim", "attention_bias")
    mixer = attention(config, qkv_bias=config.flag("attention_bias", True))
    return uniform(without_defaults(mixer), dense(config), config.num_layers())


def glm4(config: Config, outer: Config) -> Stack:
    """GLM-4-0414: norms before and after each half."""
    stack = glm(config, outer)
    stack.fields["norm_placement"] = "sandwich"
    return stack


def glm4_moe(config: Config, _: Config) -> Stack:
    """GLM-4.5 to 4.7."""
    config.require("num_key_value_heads", "head_dim", "attention_bias", "first_k_dense_replace")
    qk_norm = "per-head" if config.flag("use_qk_norm", False) else None
    bias = config.flag("attention_bias", False)
    mixer = without_defaults(attention(config, qkv_bias=bias, qk_norm=qk_norm))
    num_dense = config.count_or_zero("first_k_dense_replace")
    layers: list[Layer] = [
        ("attention", "dense" if i < num_dense else "moe") for i in range(config.num_layers())
    ]
    # The class always has the correction bias.
    ffns = {"dense": dense(config), "moe": {**experts(config), "router_bias": True}}
    stack = Stack({"attention": mixer}, ffns, layers)
    num = config.count_or_zero("num_nextn_predict_layers", 0)
    stack.mtp = [("attention", "moe")] * num
    stack.mtp_extra = deepseek_extra(config.count("hidden_size"), config.count("vocab_size"), num)
    return stack


def glm4_moe_lite(config: Config, outer: Config) -> Stack:
    """GLM-4.7-Flash: DeepSeek-V3's layers; the class always has the correction bias."""
    stack = deepseek_v3(config, outer)
    stack.ffns["moe"] = {**stack.ffns["moe"], "router_bias": True}
    return stack


def chatglm(config: Config, _: Config) -> Stack:
    """ChatGLM2, ChatGLM3 and GLM-4-9B in their own class, with names of their own."""
    config.require("multi_query_attention", "add_qkv_bias", "add_bias_linear", "rmsnorm")
    config.refuse("rmsnorm", True)
    config.refuse("post_layer_norm", True)
    config.refuse("add_bias_linear", False)
    config.refuse("apply_residual_connection_post_layernorm", False)
    kv = "multi_query_group_num" if config.flag("multi_query_attention", False) else "none"
    mixer = attention(
        config, kv=kv, head_dim="kv_channels", qkv_bias=config.flag("add_qkv_bias", False)
    )
    return uniform(
        without_defaults(mixer), dense(config, "ffn_hidden_size"), config.num_layers("num_layers"),
        max_context_tokens=config.count("seq_length"),
        vocab_size=config.count("padded_vocab_size"),
        tied_embeddings=config.flag("tie_word_embeddings", False),
    )  # fmt: skip
