"""GPT-2 to OPT, Falcon, BLOOM and Phi: biases, learned positions, parallel blocks."""

from __future__ import annotations

from typing import Any

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import attention, dense, derived_head_dim, without_defaults
from capplan.specs.hf.stack import Part, Stack, uniform


def _plain(
    config: Config, layers: str, heads: str, hidden: str, *, kv_heads: int | None = None,
    qkv_bias: bool = True, output_bias: bool = True,
) -> tuple[Part, int]:  # fmt: skip
    """Attention whose head size is the hidden size shared out over the heads; and the layers."""
    num_heads = config.count(heads)
    part: Part = {
        "kind": "attention", "num_heads": num_heads, "num_kv_heads": kv_heads or num_heads,
        "head_dim": derived_head_dim(config, heads, hidden),
        "qkv_bias": qkv_bias, "output_bias": output_bias,
    }  # fmt: skip
    return without_defaults(part), config.num_layers(layers)


def _wide(config: Config, hidden: str, width: str, bias: bool = True) -> Part:
    """An FFN without a gate, four times as wide as the hidden state where nothing is said."""
    size = config.count(width, 4 * config.count(hidden))
    part = {"kind": "dense", "intermediate_size": size, "gated": False}
    return {**part, "bias": True} if bias else part


def _stack(mixer: Part, ffn: Part, num_layers: int, **fields: Any) -> Stack:
    stack = uniform(mixer, ffn, num_layers, norm="layer", **fields)
    stack.tied_by_default = True
    return stack


def gpt2(config: Config, _: Config) -> Stack:
    config.refuse("add_cross_attention", False)
    mixer, num_layers = _plain(config, "n_layer", "n_head", "n_embd")
    context = config.count("n_positions")
    return _stack(
        mixer, _wide(config, "n_embd", "n_inner"), num_layers, hidden_size=config.count("n_embd"),
        learned_positions=context, max_context_tokens=context,
    )  # fmt: skip


def gpt_bigcode(config: Config, _: Config) -> Stack:
    config.require("multi_query")
    kv_heads = 1 if config.flag("multi_query", True) else None
    mixer, num_layers = _plain(config, "n_layer", "n_head", "n_embd", kv_heads=kv_heads)
    context = config.count("n_positions")
    return _stack(
        mixer, _wide(config, "n_embd", "n_inner"), num_layers, hidden_size=config.count("n_embd"),
        learned_positions=context, max_context_tokens=context,
    )  # fmt: skip


def starcoder2(config: Config, _: Config) -> Stack:
    config.require("num_key_value_heads", "sliding_window", "use_bias")
    bias = config.flag("use_bias", True)
    window = config.count("sliding_window") if config.has("sliding_window") else None
    mixer = without_defaults(attention(config, qkv_bias=bias, output_bias=bias, window=window))
    ffn = without_defaults(dense(config, bias=bias))
    return _stack(mixer, {**ffn, "gated": False}, config.num_layers())


def gpt_j(config: Config, _: Config) -> Stack:
    mixer, num_layers = _plain(
        config, "n_layer", "n_head", "n_embd", qkv_bias=False, output_bias=False
    )
    stack = _stack(
        mixer, _wide(config, "n_embd", "n_inner"), num_layers, hidden_size=config.count("n_embd"),
        max_context_tokens=config.count("n_positions"), norm_placement="parallel", head_bias=True,
    )  # fmt: skip
    stack.tied_by_default = False
    return stack


def gpt_neox(config: Config, _: Config) -> Stack:
    """Two norms a layer, parallel residuals or not."""
    bias = config.flag("attention_bias", True)
    mixer, num_layers = _plain(
        config, "num_hidden_layers", "num_attention_heads", "hidden_size",
        qkv_bias=bias, output_bias=bias,
    )  # fmt: skip
    stack = _stack(mixer, _wide(config, "hidden_size", "intermediate_size"), num_layers)
    stack.tied_by_default = False
    return stack


def bloom(config: Config, _: Config) -> Stack:
    """ALiBi: no positions; a norm behind the embedding."""
    hidden = _first(config, "hidden_size", "n_embed", "n_embd")
    mixer, num_layers = _plain(
        config, _first(config, "n_layer", "num_hidden_layers"),
        _first(config, "n_head", "num_attention_heads"), hidden,
    )  # fmt: skip
    return _stack(
        mixer, _wide(config, hidden, "n_inner"), num_layers, embedding_norm=True,
        hidden_size=config.count(hidden), max_context_tokens=config.count("seq_length", 2048),
    )  # fmt: skip


def opt(config: Config, _: Config) -> Stack:
    """Two more positions than the context, as fairseq's padding has it."""
    config.require("do_layer_norm_before", "word_embed_proj_dim")
    hidden = config.count("hidden_size")
    config.expect("word_embed_proj_dim", hidden)
    config.refuse("do_layer_norm_before", True)
    config.refuse("_remove_final_layer_norm", False)
    config.refuse("layer_norm_elementwise_affine", True)
    bias = config.flag("enable_bias", True)
    mixer, num_layers = _plain(
        config, "num_hidden_layers", "num_attention_heads", "hidden_size",
        qkv_bias=bias, output_bias=bias,
    )  # fmt: skip
    context = config.count("max_position_embeddings")
    ffn = _wide(config, "hidden_size", "ffn_dim", bias)
    return _stack(mixer, ffn, num_layers, learned_positions=context + 2)


def falcon(config: Config, _: Config) -> Stack:
    """7B: one KV head, one norm a layer; 40B and 180B: groups of heads, two norms."""
    config.require("multi_query", "parallel_attn", "bias")
    heads = config.count(_first(config, "num_attention_heads", "n_head"))
    new = config.flag("new_decoder_architecture", False)
    kv_heads = heads
    if new:
        kv_heads = config.count(_first(config, "num_kv_heads", "n_head_kv"), heads)
    elif config.flag("multi_query", True):
        kv_heads = 1
    if heads % kv_heads:
        raise config.fault("num_kv_heads", f"`num_kv_heads` {kv_heads} does not divide {heads}")
    bias = config.flag("bias", False)
    mixer, num_layers = _plain(
        config, _first(config, "num_hidden_layers", "n_layer"),
        _first(config, "num_attention_heads", "n_head"), "hidden_size",
        kv_heads=kv_heads, qkv_bias=bias, output_bias=bias,
    )  # fmt: skip
    # The new architecture may also norm once for both halves (Falcon 2 11B).
    norms = config.count("num_ln_in_parallel_attn", 2) if new else 1
    if norms > 2 or (new and not config.flag("parallel_attn", True)):
        raise config.fault("num_ln_in_parallel_attn", "this arrangement of norms is not read yet")
    parallel = config.flag("parallel_attn", True) and norms == 1
    ffn = _wide(config, "hidden_size", "ffn_hidden_size", bias)
    return _stack(
        mixer, ffn, num_layers, norm_placement="parallel" if parallel else "pre",
        max_context_tokens=config.count("max_position_embeddings", 2048),
    )  # fmt: skip


def mpt(config: Config, _: Config) -> Stack:
    """ALiBi in place of positions; layer norms without bias."""
    config.require("attn_config", "no_bias")
    config.refuse("no_bias", True)
    heads = config.nested("attn_config")
    heads.require("alibi")
    heads.refuse("alibi", True)
    heads.refuse("qk_ln", False)
    heads.refuse("kv_n_heads", config.count("n_heads"))
    heads.refuse("attn_type", "multihead_attention")
    mixer, num_layers = _plain(
        config, "n_layers", "n_heads", "d_model", qkv_bias=False, output_bias=False
    )
    hidden = config.count("d_model")
    width = config.count("expansion_ratio", 4) * hidden
    stack = _stack(
        mixer, {"kind": "dense", "intermediate_size": width, "gated": False}, num_layers,
        hidden_size=hidden, max_context_tokens=config.count("max_seq_len"),
    )  # fmt: skip
    stack.fields["norm"] = "layer-without-bias"
    return stack


def phi(config: Config, _: Config) -> Stack:
    """Phi-1 to 2: one norm a layer, biases everywhere, on the head too."""
    config.refuse("qk_layernorm", False)
    mixer = attention(config, qkv_bias=True, output_bias=True)
    stack = _stack(
        mixer, _wide(config, "hidden_size", "intermediate_size"), config.num_layers(),
        norm_placement="parallel", head_bias=True,
    )  # fmt: skip
    stack.tied_by_default = False
    return stack


def _first(config: Config, *names: str) -> str:
    """The first of the names that the config has."""
    return next((name for name in names if config.has(name)), names[0])
