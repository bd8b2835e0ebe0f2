"""Hybrids of Mamba and attention: Jamba, Granite 4, Bamba."""

from __future__ import annotations

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import attention, biased_attention, dense, moe, without_defaults
from capplan.specs.hf.stack import Layer, Part, Stack


def jamba(config: Config, _: Config) -> Stack:
    """Mamba 1 and attention, dense FFNs and experts, each by a period and an offset."""
    config.require("num_key_value_heads", "tie_word_embeddings")
    num_layers = config.num_layers()
    is_attention = _periodic(config, "attn_layer", num_layers)
    is_expert = _periodic(config, "expert_layer", num_layers)
    hidden = config.count("hidden_size")
    rank = config.data.get("mamba_dt_rank")
    mamba: Part = {
        "kind": "mamba1",
        "inner_size": config.count("mamba_expand") * hidden,
        "state_size": config.count("mamba_d_state"),
        "dt_rank": -(-hidden // 16) if rank == "auto" else config.count("mamba_dt_rank"),
        "conv_kernel": config.count("mamba_d_conv"),
        "inner_norms": True,
    }
    if config.flag("mamba_proj_bias", False):
        mamba["projection_bias"] = True
    if not config.flag("mamba_conv_bias", True):
        mamba["conv_bias"] = False
    ffns = {"dense": dense(config)}
    num_experts = config.count("num_experts")
    if num_experts > 1:
        ffns["moe"] = moe(config, "num_experts", "intermediate_size")
    layers: list[Layer] = [
        ("attention" if attends else "mamba", "moe" if routes and num_experts > 1 else "dense")
        for attends, routes in zip(is_attention, is_expert, strict=True)
    ]
    return Stack({"mamba": mamba, "attention": attention(config)}, ffns, layers)


def _periodic(config: Config, what: str, num_layers: int) -> list[bool]:
    period = config.count(f"{what}_period")
    offset = config.count_or_zero(f"{what}_offset")
    return [i % period == offset for i in range(num_layers)]


def granite_hybrid(config: Config, _: Config) -> Stack:
    """Granite 4: Mamba 2 and attention; a shared expert a layer, in some models routed ones."""
    config.require("num_key_value_heads", "tie_word_embeddings", "layer_types")
    kinds = config.words("layer_types", config.num_layers(), "mamba", "attention")
    mixer = biased_attention(config)
    ffn: Part
    if config.count_or_zero("num_local_experts"):
        ffn = moe(
            config, "num_local_experts", "intermediate_size",
            shared_intermediate_size=config.count("shared_intermediate_size"),
        )  # fmt: skip
    else:
        ffn = dense(config, "shared_intermediate_size")
    layers: list[Layer] = [(kind, "ffn") for kind in kinds]
    mixers = {"attention": mixer}
    if "mamba" in kinds:  # a config without such layers still carries their sizes
        mixers = {"mamba": _mamba2(config), **mixers}
    return Stack(mixers, {"ffn": ffn}, layers)


def bamba(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "tie_word_embeddings", "attn_layer_indices")
    num_layers = config.num_layers()
    attends = config.layer_numbers("attn_layer_indices", num_layers)
    mixer = biased_attention(config)
    ffn = without_defaults(dense(config, bias=config.flag("mlp_bias", False)))
    layers: list[Layer] = [
        ("attention" if i in attends else "mamba", "ffn") for i in range(num_layers)
    ]
    return Stack({"mamba": _mamba2(config), "attention": mixer}, {"ffn": ffn}, layers)


def _mamba2(config: Config) -> Part:
    heads, dim = config.count("mamba_n_heads"), config.count("mamba_d_head")
    inner = config.count("mamba_expand", 2) * config.count("hidden_size")
    if heads * dim != inner:
        message = f"{heads} heads of {dim} are not `mamba_expand` x `hidden_size`, {inner}"
        raise config.fault("mamba_n_heads", f"`mamba_n_heads`: {message}")
    part: Part = {
        "kind": "mamba2", "num_heads": heads, "head_dim": dim,
        "state_size": config.count("mamba_d_state"),
        "num_groups": config.count("mamba_n_groups"),
        "conv_kernel": config.count("mamba_d_conv"),
    }  # fmt: skip
    if config.flag("mamba_proj_bias", False):
        part["projection_bias"] = True
    if not config.flag("mamba_conv_bias", True):
        part["conv_bias"] = False
    return part
