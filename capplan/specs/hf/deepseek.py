"""DeepSeek V2 to V3.2, Kimi K2 and K2.5, GLM-5: latent attention, fine-grained experts."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.mtp import deepseek_extra
from capplan.specs.hf.parts import dense, moe, without_defaults
from capplan.specs.hf.stack import Layer, Part, Stack
from capplan.specs.hf.vision import moonvit


def deepseek_v2(config: Config, _: Config) -> Stack:
    return _stack(config, [("mla", ffn) for ffn in _ffn_kinds(config)])


def deepseek_v3(config: Config, _: Config) -> Stack:
    return _stack(config, [("mla", ffn) for ffn in _ffn_kinds(config)])


def deepseek_v32(config: Config, _: Config) -> Stack:
    return _stack(config, [("mla", ffn) for ffn in _ffn_kinds(config)], **_sparse(config))


def kimi_k25(config: Config, outer: Config) -> Stack:
    """A DeepSeek-V3 decoder behind a MoonViT vision tower."""
    stack = deepseek_v3(config, outer)
    stack.fields |= moonvit(outer, config)
    return stack


def glm_moe_dsa(config: Config, _: Config) -> Stack:
    """GLM-5; from 5.2 on, most layers take the positions that the last indexer chose."""
    num_layers = config.num_layers()
    sparse = _sparse(config)
    mixers = ["mla"] * num_layers
    if config.has("indexer_types"):
        kinds = config.words("indexer_types", num_layers, "full", "shared")
        if kinds[0] == "shared":
            raise config.fault("indexer_types", "the first layer has no indexer to share")
        mixers = ["mla" if kind == "full" else "mla-shared-indexer" for kind in kinds]
    else:
        config.refuse("index_topk_freq", 1, why="needs `indexer_types`")
    stack = _stack(config, list(zip(mixers, _ffn_kinds(config), strict=True)), **sparse)
    shared = {key: value for key, value in stack.mixers["mla"].items() if key != "indexer"}
    stack.mixers["mla-shared-indexer"] = shared
    # Its prediction layer works with the model's own embedding and head.
    hidden = config.count("hidden_size")
    stack.mtp_extra = len(stack.mtp) * (2 * hidden * hidden + 3 * hidden)
    return stack


def _stack(config: Config, layers: list[Layer], **sparse: Any) -> Stack:
    config.require("q_lora_rank", "topk_method")
    ffns = {"dense": dense(config), "moe": experts(config)}
    stack = Stack({"mla": {**mla(config), **sparse}}, ffns, layers)
    num = config.count_or_zero("num_nextn_predict_layers", 0)
    stack.mtp = [("mla", "moe")] * num
    stack.mtp_extra = deepseek_extra(config.count("hidden_size"), config.count("vocab_size"), num)
    return stack


def _ffn_kinds(config: Config) -> list[str]:
    """Dense layers first, then experts."""
    num_layers = config.num_layers()
    config.refuse("moe_layer_freq", 1)
    num_dense = config.count_or_zero("first_k_dense_replace")
    kinds = ["dense" if i < num_dense else "moe" for i in range(num_layers)]
    if config.has("mlp_layer_types"):
        given = config.words("mlp_layer_types", num_layers, "dense", "sparse")
        if given != ["dense" if kind == "dense" else "sparse" for kind in kinds]:
            message = f"differs from `first_k_dense_replace` {num_dense}"
            raise config.fault("mlp_layer_types", f"`mlp_layer_types` {message}")
    return kinds


def mla(config: Config) -> Part:
    bias = config.flag("attention_bias", False)
    heads = config.count("num_attention_heads")
    if config.count("num_key_value_heads", heads) != heads:
        message = f"is not `num_attention_heads` {heads:,}, as latent attention has it"
        raise config.fault("num_key_value_heads", f"`num_key_value_heads` {message}")
    part: Part = {
        "kind": "mla",
        "num_heads": heads,
        "q_lora_rank": config.count("q_lora_rank") if config.has("q_lora_rank") else None,
        "kv_lora_rank": config.count("kv_lora_rank"),
        "qk_nope_head_dim": config.count("qk_nope_head_dim"),
        "qk_rope_head_dim": config.count("qk_rope_head_dim"),
        "v_head_dim": config.count("v_head_dim"),
        "bias": bias,
    }
    config.expect("qk_head_dim", part["qk_nope_head_dim"] + part["qk_rope_head_dim"])
    return without_defaults(part)


def _sparse(config: Config) -> dict[str, Any]:
    """DeepSeek Sparse Attention."""
    heads, dim = config.count("index_n_heads"), config.count("index_head_dim")
    indexer = {"num_heads": heads, "head_dim": dim}
    return {"sparse_tokens": config.count("index_topk"), "indexer": indexer}


def experts(config: Config) -> Part:
    """Routed and shared experts; a correction bias where the router balances without a loss."""
    config.require("n_shared_experts")
    width = config.count("moe_intermediate_size")
    shared = config.count_or_zero("n_shared_experts", 0) * width
    part = moe(
        config, "n_routed_experts", "moe_intermediate_size", shared_intermediate_size=shared,
        router_bias=balances_by_bias(config),
    )  # fmt: skip
    return {key: value for key, value in part.items() if value not in (False, 0)}


def balances_by_bias(config: Config) -> bool:
    """Whether the router has a bias that balances the load (DeepSeek-V3, sec. 2.1.2)."""
    if not config.has("topk_method"):
        return False
    known = ("noaux_tc", "greedy", "group_limited_greedy")
    method = config.data["topk_method"]
    if method not in known:
        wanted = ", ".join(known)
        raise config.fault("topk_method", f"`topk_method` should be one of {wanted}")
    return bool(method == "noaux_tc")
