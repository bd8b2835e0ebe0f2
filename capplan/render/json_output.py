"""The stable form for programs: `{"schema", "inputs", "assumptions", "result"}`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from capplan.results.assumptions import Assumption


def document(
    schema: str, inputs: Mapping[str, Any], assumptions: Iterable[Assumption], result: Any
) -> str:
    """One JSON document. Raises ValueError for NaN or infinity, which JSON does not have."""
    content = {
        "schema": schema,
        "inputs": to_plain(inputs),
        "assumptions": to_plain(list(assumptions)),
        "result": to_plain(result),
    }
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as what JSON knows; 12 significant digits."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        # A platform's last bit must not change the bytes of an answer.
        rounded = float(f"{value:.12g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
    return value
