"""Hugging Face `config.json` read directly, by architecture.

Only what is understood is read: an unknown architecture, or a setting that would change the
sizes and is not modelled, is refused by name. Nothing is sized by guess.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError, did_you_mean
from capplan.specs.documents import Document, read_json
from capplan.specs.fields import shown, validate
from capplan.specs.model import MAX_LAYERS, ModelSpec

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class Config:
    """Typed access to the fields of one config, with faults that say where."""

    def __init__(self, document: Document) -> None:
        self.document = document
        if not isinstance(document.data, dict):
            raise CapplanError("the file should be a JSON object", location=document.locate(()))
        self.data: dict[str, Any] = document.data

    def count(self, name: str, default: int | None = None, most: int = 10**9) -> int:
        """A whole number above zero; ``default`` where the field is absent or null."""
        value = self.data.get(name)
        if value is None:
            if default is not None:
                return default
            raise self.fault(name, f"`{name}` is missing")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
            wanted = f"a whole number from 1 to {most:,}"
            raise self.fault(name, f"`{name}` should be {wanted}, not {shown(value)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false; ``default`` where the field is absent or null."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fault(name, f"`{name}` should be true or false, not {shown(value)}")
        return value

    def fault(self, name: str, message: str, hint: str | None = None) -> CapplanError:
        return CapplanError(message, hint=hint, location=self.document.locate([name]))


def read_config(path: Path) -> ModelSpec:
    """A model from its `config.json`.

    Raises CapplanError with the place of the fault, or with the name of what is not understood.
    """
    config = Config(read_json(path))
    architecture = _architecture(config)
    reader = _READERS[architecture]
    name = config.data.get("_name_or_path")
    fallback = path.parent.name if path.name == "config.json" else path.stem
    spec = {
        "name": name if _is_name(name) else fallback or "config.json",
        "sources": [str(path)[-500:]],
        **_common(config),
        **reader(config),
    }
    return validate(ModelSpec, Document(config.document.file, config.document.text, spec))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _architecture(config: Config) -> str:
    given = config.data.get("architectures")
    if not isinstance(given, list) or not given or not isinstance(given[0], str):
        raise config.fault(
            "architectures",
            "`architectures` should name the model's class",
            hint="is this the config.json of a language model?",
        )
    architecture: str = given[0]
    if architecture not in _READERS:
        near = did_you_mean(architecture, _READERS)
        known = f"understood: {', '.join(sorted(_READERS))}; others: write a YAML file"
        raise config.fault(
            "architectures",
            f"the architecture `{architecture[:80]}` is not understood",
            hint=f"{near} {known}" if near else known,
        )
    return architecture


def _common(config: Config) -> dict[str, Any]:
    quantization = config.data.get("quantization_config")
    if quantization is not None:
        method = quantization.get("quant_method") if isinstance(quantization, dict) else None
        raise config.fault(
            "quantization_config",
            f"the quantisation {shown(method)} of this checkpoint is not read yet",
            hint="give the config of the unquantised model and --dtype",
        )
    return {
        "max_context_tokens": config.count("max_position_embeddings"),
        "hidden_size": config.count("hidden_size"),
        "vocab_size": config.count("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
        "weights": {"dtype": _dtype(config)},
    }


def _dtype(config: Config) -> str:
    name = "dtype" if "dtype" in config.data else "torch_dtype"
    value = config.data.get(name)
    if name not in config.data:
        raise config.fault(name, f"`{name}` is missing", f"one of: {', '.join(_DTYPES)}")
    if not isinstance(value, str) or value not in _DTYPES:
        raise config.fault(
            name, f"`{name}` should be one of {', '.join(_DTYPES)}, not {shown(value)}"
        )
    return _DTYPES[value]


def _attention(config: Config, **more: Any) -> dict[str, Any]:
    num_heads = config.count("num_attention_heads")
    hidden = config.count("hidden_size")
    # Null means one KV head a query head: plain multi-head attention.
    num_kv_heads = config.count("num_key_value_heads", num_heads)
    if num_heads % num_kv_heads:
        raise config.fault(
            "num_key_value_heads",
            f"`num_key_value_heads` {num_kv_heads:,} does not divide `num_attention_heads` "
            f"{num_heads:,}",
        )
    if config.data.get("head_dim") is None and hidden % num_heads:
        raise config.fault(
            "num_attention_heads",
            f"`hidden_size` {hidden} is not a multiple of `num_attention_heads` {num_heads}, "
            "and there is no `head_dim`",
        )
    return {
        "kind": "attention",
        "num_heads": num_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": config.count("head_dim", hidden // num_heads or 1),
        **more,
    }


def _stack(attention: dict[str, Any], ffn: dict[str, Any], num_layers: int) -> dict[str, Any]:
    return {
        "mixers": {"attention": attention},
        "ffns": {"ffn": ffn},
        "layers": [{"repeat": num_layers, "mixer": "attention", "ffn": "ffn"}],
    }


def _dense(config: Config, *, bias: bool = False) -> dict[str, Any]:
    return {
        "kind": "dense",
        "intermediate_size": config.count("intermediate_size"),
        "bias": bias,
    }


def _require(config: Config, *names: str) -> None:
    """Refuse an absent field for which transformers has a default of its own, by class."""
    for name in names:
        if name not in config.data:
            hint = "transformers would take a default of this class; write it out"
            raise config.fault(name, f"`{name}` is missing", hint)


def _llama(config: Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", False)
    attention = _attention(config, qkv_bias=bias, output_bias=bias)
    ffn = _dense(config, bias=config.flag("mlp_bias", False))
    return _stack(attention, ffn, config.count("num_hidden_layers", most=MAX_LAYERS))


def _mistral(config: Config) -> dict[str, Any]:
    _require(config, "num_key_value_heads", "sliding_window")
    return _windowed(config)


def _windowed(config: Config) -> dict[str, Any]:
    window = config.data.get("sliding_window")
    attention = _attention(config)
    if window is not None:
        attention["window"] = config.count("sliding_window")
    return _stack(attention, _dense(config), config.count("num_hidden_layers", most=MAX_LAYERS))


def _top_k(config: Config, experts: str) -> int:
    name, num_experts = "num_experts_per_tok", config.count(experts)
    num = config.count(name)
    if num > num_experts:
        raise config.fault(name, f"`{name}` {num:,} is above `{experts}` {num_experts:,}")
    return num


def _mixtral(config: Config) -> dict[str, Any]:
    _require(config, "num_key_value_heads")
    attention = _windowed(config)["mixers"]["attention"]
    ffn = {
        "kind": "moe",
        "num_experts": config.count("num_local_experts"),
        "experts_per_token": _top_k(config, "num_local_experts"),
        "intermediate_size": config.count("intermediate_size"),
    }
    return _stack(attention, ffn, config.count("num_hidden_layers", most=MAX_LAYERS))


def _refuse_window(config: Config) -> None:
    """Qwen configs carry a `sliding_window` that is off unless `use_sliding_window` is true."""
    if config.flag("use_sliding_window", False):
        raise config.fault("use_sliding_window", "sliding windows of Qwen models are not read yet")


def _qwen2(config: Config) -> dict[str, Any]:
    _require(config, "num_key_value_heads")
    _refuse_window(config)
    attention = _attention(config, qkv_bias=True)
    return _stack(attention, _dense(config), config.count("num_hidden_layers", most=MAX_LAYERS))


def _qwen3(config: Config) -> dict[str, Any]:
    _require(config, "num_key_value_heads", "head_dim")
    _refuse_window(config)
    num_layers = config.count("num_hidden_layers", most=MAX_LAYERS)
    return _stack(_qwen3_attention(config), _dense(config), num_layers)


def _qwen3_attention(config: Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", False)
    return _attention(config, qkv_bias=bias, output_bias=bias, qk_norm="per-head")


def _qwen_moe(config: Config, attention: dict[str, Any], **more: Any) -> dict[str, Any]:
    _require(config, "num_key_value_heads")
    _refuse_window(config)
    for name, mixed in (
        ("mlp_only_layers", bool(config.data.get("mlp_only_layers"))),
        ("decoder_sparse_step", config.count("decoder_sparse_step", 1) != 1),
    ):
        if mixed:
            message = f"`{name}`: a mix of dense and expert layers is not read yet"
            raise config.fault(name, message)
    ffn = {
        "kind": "moe",
        "num_experts": config.count("num_experts"),
        "experts_per_token": _top_k(config, "num_experts"),
        "intermediate_size": config.count("moe_intermediate_size"),
        **more,
    }
    return _stack(attention, ffn, config.count("num_hidden_layers", most=MAX_LAYERS))


def _qwen2_moe(config: Config) -> dict[str, Any]:
    return _qwen_moe(
        config,
        _attention(config, qkv_bias=config.flag("qkv_bias", True)),
        shared_intermediate_size=config.count("shared_expert_intermediate_size"),
        shared_expert_gate=True,
    )


def _qwen3_moe(config: Config) -> dict[str, Any]:
    return _qwen_moe(config, _qwen3_attention(config))


_READERS: dict[str, Callable[[Config], dict[str, Any]]] = {
    "LlamaForCausalLM": _llama,
    "MistralForCausalLM": _mistral,
    "MixtralForCausalLM": _mixtral,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen2MoeForCausalLM": _qwen2_moe,
    "Qwen3ForCausalLM": _qwen3,
    "Qwen3MoeForCausalLM": _qwen3_moe,
}
