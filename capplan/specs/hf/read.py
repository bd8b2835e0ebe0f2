"""From a `config.json` to a model: its architecture's reader, and what all architectures share.

Only what is understood is read: an unknown architecture, or a setting that would change the
sizes and is not modelled, is refused by name. Nothing is sized by guess.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from capplan.errors import did_you_mean
from capplan.specs.documents import Document, read_json
from capplan.specs.fields import shown, validate
from capplan.specs.hf.architectures import READERS, REFUSED
from capplan.specs.hf.config import DTYPES, Config
from capplan.specs.hf.mtp import mtp_parameters
from capplan.specs.hf.quantization import quantised
from capplan.specs.hf.stack import Stack
from capplan.specs.model import ModelSpec

# Quantised editions are published under such names.
_QUANTISED_NAME = re.compile(r"(?i)[-_](nvfp4|mxfp4|fp8|awq|gptq|int[48]|w[48]a(8|16)|4bit|8bit)\b")
_NOTE = (
    "The name says that this checkpoint is quantised and its config does not say how; the bytes "
    "are those of the unquantised model. Some keep it in hf_quant_config.json beside the config."
)


def read_config(path: Path) -> ModelSpec:
    """A model from its `config.json`.

    Raises CapplanError with the place of the fault, or with the name of what is not understood.
    """
    config = Config(read_json(path))
    architecture = _architecture(config)
    # A model of several modalities keeps its decoder's sizes in a config of their own.
    text = config.nested("text_config") if config.has("text_config") else config
    stack = READERS[architecture](text, config)
    dtype = _dtype(text, config, stack)
    common = _common(text, config, stack)
    tied = bool({**common, **stack.fields}["tied_embeddings"])
    stack, quantization = quantised(stack, text, config, path, dtype, tied)
    name = config.data.get("_name_or_path")
    fallback = path.parent.name if path.name == "config.json" else path.stem
    weights: dict[str, Any] = {"dtype": dtype}
    if quantization is not None:
        weights["quantization"] = quantization
    spec = {
        "name": name if _is_name(name) else fallback or "config.json",
        "sources": [str(path)[-500:]],
        **common,
        "weights": weights,
        **stack.spec(),
    }
    if quantization is None and _QUANTISED_NAME.search(f"{spec['name']} {path}"):
        spec["note"] = _NOTE
    if stack.mtp:
        spec["mtp_parameters"] = mtp_parameters(stack, spec)
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
    if architecture in REFUSED:
        message = f"the architecture `{architecture}` is not read: {REFUSED[architecture]}"
        raise config.fault("architectures", message, hint="write a YAML file of what it is near to")
    if architecture not in READERS:
        near = did_you_mean(architecture, READERS)
        known = f"understood: {', '.join(sorted(READERS))}; others: write a YAML file"
        raise config.fault(
            "architectures",
            f"the architecture `{architecture[:80]}` is not understood",
            hint=f"{near} {known}" if near else known,
        )
    return architecture


def _common(text: Config, config: Config, stack: Stack) -> dict[str, Any]:
    """The fields that nearly all configs have under one name; a reader gives the others."""
    given = stack.fields
    common: dict[str, Any] = {}
    if "max_context_tokens" not in given:
        common["max_context_tokens"] = text.count("max_position_embeddings")
    if "hidden_size" not in given:
        common["hidden_size"] = text.count("hidden_size")
    if "vocab_size" not in given:
        common["vocab_size"] = text.count("vocab_size")
    if "tied_embeddings" not in given:
        common["tied_embeddings"] = _tied(text, config, stack.tied_by_default)
    return common


def _tied(text: Config, config: Config, default: bool) -> bool:
    """The outer config's word holds; an inner one that says otherwise is refused."""
    inner = text.flag("tie_word_embeddings", default)
    if text is config or not config.has("tie_word_embeddings"):
        return inner
    outer = config.flag("tie_word_embeddings", default)
    if text.has("tie_word_embeddings") and inner != outer:
        raise text.fault("tie_word_embeddings", "`tie_word_embeddings` differs from the outer one")
    return outer


def _dtype(text: Config, config: Config, stack: Stack) -> str:
    for place in (text, config):
        for name in ("dtype", "torch_dtype"):
            if name not in place.data:
                continue
            value = place.data[name]
            if not isinstance(value, str) or value not in DTYPES:
                wanted = ", ".join(DTYPES)
                raise place.fault(name, f"`{name}` should be one of {wanted}, not {shown(value)}")
            return DTYPES[value]
    if stack.dtype is None:
        raise text.fault("torch_dtype", "`torch_dtype` is missing", f"one of: {', '.join(DTYPES)}")
    return stack.dtype
