"""Public questions and how an answer of ours is read; `tests/test_questions.py` runs them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml
from commands import run_command

DATA = Path(__file__).parent / "data" / "questions.yaml"
GIB = 2**30
# Of a figure that is computed, measured, or said to be about so much.
TOLERANCES = {"computed": 0.05, "measured": 0.20, "about": 0.30}
KINDS = (*TOLERANCES, "exact", "holds", "within")


class Outcome(NamedTuple):
    """One comparison: what is stated, what we find, and whether they agree."""

    what: str
    stated: str
    found: str
    agrees: bool


def load() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return loaded


def ask(question: Mapping[str, Any]) -> tuple[list[Outcome], list[Outcome]]:
    """Run the question's command; how its answer and the further figures compare."""
    code, output = run_command(f"{question['command']} --json", refused=True)
    try:
        result = json.loads(output, object_hook=lambda fields: SimpleNamespace(**fields)).result
    except (ValueError, AttributeError):
        refused = f"refused (exit code {code})"
        return [Outcome(c["what"], _stated(c), refused, False) for c in question["answer"]], []
    names = {"r": result, "code": code, "GiB": GIB, **_READERS}
    return (
        [_compare(check, names) for check in question["answer"]],
        [_compare(check, names) for check in question.get("figures", [])],
    )


def _compare(check: Mapping[str, Any], names: dict[str, Any]) -> Outcome:
    (kind,) = (kind for kind in KINDS if kind in check)
    stated, shown = check[kind], _stated(check)
    # The expressions are those of our own file.
    found = eval(str(stated if kind == "holds" else check["read"]), {**names})
    if kind == "holds":
        return Outcome(check["what"], shown, "yes" if found else "no", bool(found))
    if kind == "exact":
        return Outcome(check["what"], shown, _shown(found), found == stated)
    if kind == "within":
        low, high = found
        span = f"{_shown(low)} to {_shown(high)}"
        return Outcome(check["what"], shown, span, low <= stated <= high)
    agrees = abs(found - stated) <= TOLERANCES[kind] * abs(stated)
    return Outcome(check["what"], shown, _shown(found), agrees)


def _stated(check: Mapping[str, Any]) -> str:
    (kind,) = (kind for kind in KINDS if kind in check)
    if kind == "holds":
        return "yes"
    return ("about " if kind == "about" else "") + _shown(check[kind])


def _shown(value: Any) -> str:
    """Two digits: the third moves with every improvement of the model."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def _latency(result: Any, key: str) -> float:
    return float(next(one.mean_s for one in result.latencies if one.key == key))


def _variant(result: Any, name: str = "as it is") -> Any:
    return next(one.result for one in result.variants if one.name == name)


def _point(result: Any, value: float) -> Any:
    return next(one for one in result.points if one.value == value)


def _term(result: Any, name: str) -> tuple[float, float]:
    """In GiB, from least to most."""
    found = next(one for one in result.memory.terms if one.name == name)
    return found.low_bytes / GIB, found.high_bytes / GIB


def _pool(result: Any) -> tuple[float, float]:
    """In GiB a GPU, from least to most."""
    return result.memory.pool_low_bytes / GIB, result.memory.pool_high_bytes / GIB


def _log_range(result: Any, name: str) -> tuple[float, float]:
    """In GiB, from least to most, of what a log prints."""
    found = next(one for one in result.log.terms if one.name == name)
    return found.low / GIB, found.high / GIB


def _attention_block(result: Any) -> int:
    return int(next(one.block_size for one in result.sizing.groups if one.kind == "full"))


_READERS = {
    "latency": _latency,
    "variant": _variant,
    "point": _point,
    "term": _term,
    "pool": _pool,
    "log_range": _log_range,
    "attention_block": _attention_block,
    "rules": lambda result: [one.rule for one in result.findings],
    "ceil": math.ceil,
}
