"""Nemotron-4 and Minitron, Nemotron-H and 3 (Mamba hybrids), and DeciLM's searched stacks."""

from __future__ import annotations

from typing import Any

from capplan.specs.fields import shown
from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import attention, biased_attention, dense, moe, without_defaults
from capplan.specs.hf.stack import Layer, Part, Stack, uniform
from capplan.specs.model import MAX_LAYERS


def nemotron(config: Config, _: Config) -> Stack:
    """Squared ReLU without a gate; layer norms with biases."""
    config.require("num_key_value_heads", "attention_bias", "mlp_bias")
    mixer = biased_attention(config)
    ffn = dense(config, gated=False, bias=config.flag("mlp_bias", False))
    return uniform(mixer, ffn, config.num_layers(), norm="layer")


_BLOCKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_MODULES = {
    "attention": "mixer", "mamba2": "mixer", "dense_ffn": "mixer",
    "shared_experts": "mixer.shared_experts", "experts": "mixer.experts.0",
}  # fmt: skip


def nemotron_h(config: Config, _: Config) -> Stack:
    """A block is a mixer or an FFN, each with one norm before it."""
    config.require("num_key_value_heads")
    blocks = _blocks(config, "hybrid_override_pattern", "layers_block_type")
    config.expect("num_hidden_layers", len(blocks))
    head_dim = "head_dim" if config.has("head_dim") else "attention_head_dim"
    config.count(head_dim)
    mixer = biased_attention(config, head_dim=head_dim)
    mixers: dict[str, Part] = {"mamba": _mamba(config), "attention": mixer}
    ffns: dict[str, Part] = {}
    if "mlp" in blocks:
        mlp_bias = config.flag("mlp_bias", False)
        ffns["mlp"] = {**without_defaults(dense(config, bias=mlp_bias)), "gated": False}
    if "moe" in blocks:
        ffns["moe"] = _experts(config)
    stack = Stack(mixers, ffns, [_layer(block) for block in blocks], modules=_MODULES)
    _predict(stack, config)
    return stack


def _layer(block: str) -> Layer:
    return (None, block) if block in ("mlp", "moe") else (block, None)


def _blocks(config: Config, pattern: str, names: str) -> list[str]:
    """Kinds of blocks in order, from a word of letters or from a list of names."""
    if config.has(pattern):
        word = config.data[pattern]
        if not isinstance(word, str) or not 0 < len(word) <= MAX_LAYERS or set(word) - set(_BLOCKS):
            raise config.fault(pattern, f"`{pattern}` should be a word of {' '.join(_BLOCKS)}")
        blocks = [_BLOCKS[letter] for letter in word]
        if config.has(names) and config.data[names] != blocks:
            raise config.fault(names, f"`{names}` differs from `{pattern}`")
        return blocks
    listed = config.data.get(names)
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_LAYERS:
        raise config.fault(names, f"`{names}` should be a list of blocks")
    for block in listed:
        if not isinstance(block, str) or block not in _BLOCKS.values():
            raise config.fault(names, f"`{names}`: {shown(block)} is not understood")
    return listed


def _mamba(config: Config) -> Part:
    state = {"float32": "fp32", "bfloat16": "bf16"}.get(
        str(config.data.get("mamba_ssm_cache_dtype", "bfloat16"))
    )
    if state is None:
        message = "`mamba_ssm_cache_dtype` should be float32 or bfloat16"
        raise config.fault("mamba_ssm_cache_dtype", message)
    bias = config.flag("mamba_proj_bias", False)
    if config.flag("use_bias", bias) != bias:
        raise config.fault("use_bias", "`use_bias` differs from `mamba_proj_bias`")
    part: Part = {
        "kind": "mamba2",
        "num_heads": config.count("mamba_num_heads"),
        "head_dim": config.count("mamba_head_dim"),
        "state_size": config.count("ssm_state_size"),
        "num_groups": config.count("n_groups"),
        "conv_kernel": config.count("conv_kernel"),
        "state_dtype": state,
    }
    if bias:
        part["projection_bias"] = True
    if not config.flag("use_conv_bias", True):
        part["conv_bias"] = False
    return part


def _experts(config: Config) -> Part:
    config.refuse("mlp_bias", False)
    shared = config.count_or_zero("n_shared_experts", 0)
    if shared:
        shared *= config.count("moe_shared_expert_intermediate_size")
    part = moe(
        config, "n_routed_experts", "moe_intermediate_size",
        gated=False, router_bias=True,
    )  # fmt: skip
    if shared:
        part["shared_intermediate_size"] = shared
    if config.has("moe_latent_size"):
        part["latent_size"] = config.count("moe_latent_size")
    return part


def _predict(stack: Stack, config: Config) -> None:
    """A prediction module joins both inputs, norms each, and ends with a norm."""
    num = config.count_or_zero("num_nextn_predict_layers", 0)
    if not num:
        return
    blocks = _blocks(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type")
    for block in blocks:
        if block not in stack.mixers and block not in stack.ffns:
            name = "mtp_hybrid_override_pattern"
            raise config.fault(name, f"prediction layers have `{block}`, the others have none")
    hidden = config.count("hidden_size")
    stack.mtp = [_layer(block) for block in blocks] * num
    stack.mtp_extra = num * (2 * hidden * hidden + 3 * hidden)


def deci(config: Config, _: Config) -> Stack:
    """Stacks found by architecture search: each layer has heads and a width of its own."""
    if config.has("block_configs"):
        return _deci_nas(config)
    num_layers = config.num_layers()
    listed = config.data.get("num_key_value_heads_per_layer")
    heads = config.count("num_attention_heads")
    if not isinstance(listed, list) or len(listed) != num_layers:
        name = "num_key_value_heads_per_layer"
        raise config.fault(name, f"`{name}` should be a list of {num_layers:,} numbers")
    mixers: dict[str, Part] = {}
    layers: list[Layer] = []
    for num in listed:
        if type(num) is not int or num < 1 or heads % num:
            name = "num_key_value_heads_per_layer"
            raise config.fault(name, f"`{name}`: {shown(num)} does not divide the {heads} heads")
        mixers[f"attention-{num}"] = attention(config.with_values(num_key_value_heads=num))
        layers.append((f"attention-{num}", "ffn"))
    return Stack(mixers, {"ffn": dense(config)}, layers)


def _deci_nas(config: Config) -> Stack:
    num_layers = config.num_layers()
    blocks = config.data["block_configs"]
    if not isinstance(blocks, list) or len(blocks) != num_layers:
        message = f"should have an entry for each of {num_layers:,} layers"
        raise config.fault("block_configs", f"`block_configs` {message}")
    config.refuse("attention_bias", False)
    config.refuse("mlp_bias", False)
    mixers: dict[str, Part] = {}
    ffns: dict[str, Part] = {}
    layers: list[Layer] = []
    for i in range(num_layers):
        block = Config(config.document, (*config.path, "block_configs", i), blocks[i])
        mixer, ffn = _deci_mixer(config, block.nested("attention")), _deci_ffn(config, block)
        mixer_name = f"attention-{mixer['num_kv_heads']}" if mixer else None
        ffn_name = f"ffn-{ffn['intermediate_size']}" if ffn else None
        if mixer_name and mixer:
            mixers[mixer_name] = mixer
        if ffn_name and ffn:
            ffns[ffn_name] = ffn
        if not mixer and not ffn:
            raise block.fault("attention", "a layer without attention and FFN is not read yet")
        layers.append((mixer_name, ffn_name))
    return Stack(mixers, ffns, layers)


def _deci_mixer(config: Config, block: Config) -> Part | None:
    block.refuse("replace_with_linear", False)
    for name in ("sparsify", "window_length", "num_sink_tokens"):
        block.refuse(name)
    block.refuse("unshifted_sink", False)
    if block.flag("no_op", False):
        return None
    heads, group = config.count("num_attention_heads"), block.count("n_heads_in_group")
    if heads % group:
        message = f"`n_heads_in_group` {group} does not divide the {heads} heads"
        raise block.fault("n_heads_in_group", message)
    return attention(config.with_values(num_key_value_heads=heads // group))


def _deci_ffn(config: Config, block: Config) -> Part | None:
    ffn = block.nested("ffn")
    ffn.refuse("replace_with_linear", False)
    ffn.refuse("sparsify")
    if ffn.flag("no_op", False):
        return None
    mult: Any = ffn.data.get("ffn_mult")
    if isinstance(mult, bool) or not isinstance(mult, (int, float)) or not 0 < mult < 1000:
        raise ffn.fault("ffn_mult", f"`ffn_mult` should be a number above zero, not {shown(mult)}")
    # Two thirds for the gate, rounded up to a multiple of 256, as the model's code has it.
    width = int(2 * mult * config.count("hidden_size") / 3)
    return {"kind": "dense", "intermediate_size": -(-width // 256) * 256}
