"""DeepSeek-V4: compressed attention, hash-routed layers, parallel residual streams."""

from __future__ import annotations

from capplan.specs.fields import shown
from capplan.specs.hf.config import Config
from capplan.specs.hf.deepseek import experts
from capplan.specs.hf.stack import Layer, Part, Stack

# What `compress_ratios` says of a layer: only the window, CSA with an indexer, or HCA.
_KINDS = {0: "window", 4: "sparse", 128: "compressed"}


def deepseek_v4(config: Config, _: Config) -> Stack:
    config.require("topk_method", "num_hash_layers", "num_nextn_predict_layers")
    config.expect("num_key_value_heads", 1)
    config.refuse("attention_bias", False)
    num_layers, num_mtp = config.num_layers(), config.count_or_zero("num_nextn_predict_layers")
    kinds = _kinds(config, num_layers + num_mtp)
    num_hash = config.count_or_zero("num_hash_layers")
    moe = experts(config)
    hashed = {key: value for key, value in moe.items() if key != "router_bias"}
    hashed["hash_table_tokens"] = config.count("vocab_size")
    layers: list[Layer] = [
        (kind, "hash" if i < num_hash else "moe") for i, kind in enumerate(kinds[:num_layers])
    ]
    streams = config.count("hc_mult", most=64)
    stack = Stack(_mixers(config), {"hash": hashed, "moe": moe}, layers)
    stack.fields["residual_streams"] = streams
    stack.mtp = [(kind, "moe") for kind in kinds[num_layers:]]
    hidden = config.count("hidden_size")
    stack.mtp_extra = num_mtp * (2 * hidden * hidden + 3 * hidden + _streams(streams, hidden))
    return stack


def _kinds(config: Config, num: int) -> list[str]:
    """A ratio for each layer, those of the prediction layers last."""
    ratios = config.data.get("compress_ratios")
    if not isinstance(ratios, list) or len(ratios) != num:
        message = f"should have an entry for each of {num:,} layers, prediction layers included"
        raise config.fault("compress_ratios", f"`compress_ratios` {message}")
    for ratio in ratios:
        if type(ratio) is not int or ratio not in _KINDS:
            message = f"`compress_ratios`: {shown(ratio)} is not understood"
            raise config.fault("compress_ratios", message, hint="0, 4 and 128 are")
    return [_KINDS[ratio] for ratio in ratios]


def _mixers(config: Config) -> dict[str, Part]:
    heads, groups = config.count("num_attention_heads"), config.count("o_groups")
    if heads % groups:
        message = f"`o_groups` {groups} does not divide `num_attention_heads` {heads}"
        raise config.fault("o_groups", message)
    window: Part = {
        "kind": "compressed",
        "num_heads": heads,
        "head_dim": config.count("head_dim"),
        "q_lora_rank": config.count("q_lora_rank"),
        "output_groups": groups,
        "output_lora_rank": config.count("o_lora_rank"),
        "window": config.count("sliding_window"),
    }
    indexer = {
        "num_heads": config.count("index_n_heads"), "head_dim": config.count("index_head_dim"),
    }  # fmt: skip
    sparse = {"sparse_entries": config.count("index_topk"), "indexer": indexer}
    return {
        "window": window,
        "sparse": {**window, "compress_ratio": 4, **sparse},
        "compressed": {**window, "compress_ratio": 128},
    }


def _streams(num: int, hidden: int) -> int:
    """Weights of the streams in a prediction layer: around both halves, and before its head."""
    mixed, outputs = num * hidden, (2 + num) * num
    return 2 * (outputs * mixed + outputs + 3) + num * mixed + num + 1
