"""A model as the text of its YAML file, laid out as people write it in `models/`.

What is at its default is left out; a part stands on one line where it fits. The text loads back
to an equal model.
"""

from __future__ import annotations

import json
import re
from typing import Any

from capplan.specs.model import ModelSpec

WIDTH = 100
# What YAML reads as a text without quotes, whatever the loader.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./()-]*( [A-Za-z0-9_./()-]+)*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
# Blank lines separate: what it is, how large it is, its kinds and their order.
_HEAD = ("name", "aliases", "sources", "released")
_KINDS = ("mixers", "ffns", "layers")


def yaml_text(model: ModelSpec) -> str:
    """The file of a model."""
    data = model.model_dump(mode="json", exclude_defaults=True)
    head = [key for key in _HEAD if key in data]
    sizes = [key for key in data if key not in (*_HEAD, *_KINDS) and key in _SIZES]
    rest = [key for key in data if key not in (*head, *sizes, *_KINDS)]
    parts = [
        "".join(_field(key, data[key], 0) for key in keys)
        for keys in (head, sizes, [*(key for key in _KINDS if key in data), *rest])
    ]
    return "\n".join(parts)


_SIZES = {
    name
    for name in ModelSpec.model_fields
    if name not in (*_HEAD, *_KINDS, "extra_parameters", "mtp_parameters", "not_counted", "note")
}


def _field(key: str, value: Any, indent: int) -> str:
    """`key: value`, over as many lines as it takes."""
    start = " " * indent + f"{_scalar(key)}:"
    is_kind_list = indent == 0 and isinstance(value, (dict, list)) and key != "weights"
    line = f"{start} {_flow(value)}"
    if not isinstance(value, (dict, list)) or (not is_kind_list and len(line) <= WIDTH):
        return line + "\n"
    return f"{start}\n" + _block(value, indent + 2)


def _block(value: dict[str, Any] | list[Any], indent: int) -> str:
    if isinstance(value, dict):
        return "".join(_field(key, inner, indent) for key, inner in value.items())
    return "".join(_item(inner, indent) for inner in value)


def _item(value: Any, indent: int) -> str:
    """An entry of a list; a repeated pattern shows its layers below each other."""
    line = " " * indent + f"- {_flow(value)}"
    if not isinstance(value, dict) or (len(line) <= WIDTH and "pattern" not in value):
        return line + "\n"
    text = _block(value, indent + 2)
    if "pattern" in value:
        fields = "".join(_field(k, v, indent + 2) for k, v in value.items() if k != "pattern")
        layers = "".join(_item(layer, indent + 4) for layer in value["pattern"])
        text = f"{fields}{' ' * (indent + 2)}pattern:\n{layers}"
    return " " * indent + "- " + text[indent + 2 :]


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        fields = (f"{_scalar(key)}: {_flow(inner)}" for key, inner in value.items())
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON's scalars are YAML's.
    return json.dumps(value, ensure_ascii=False)
