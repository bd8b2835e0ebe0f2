"""YAML as people write it: comments above the keys they explain, plain words unquoted."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH = 100
# What every reader of YAML 1.1 and 1.2 takes for a text; anything else is quoted.
_PLAIN = re.compile(
    r"[A-Za-z/][A-Za-z0-9 ._/@+=%()-]*(:[A-Za-z0-9._/-]+)*|--[a-z][A-Za-z0-9_./=+-]*"
)
_WORDS = {
    "true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf", "nan",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Noted:
    """A value with a comment above its key."""

    value: Any
    note: str


def document(value: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """One document; ``notes`` stand in front of it as comments."""
    lines = [line for note in notes for line in comment(note)]
    return "\n".join([*lines, *_mapping(value, "")]) + "\n"


def comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def scalar(value: Any) -> str:
    """A scalar on one line.

    >>> scalar("vllm/vllm-openai:v0.11.0"), scalar("no"), scalar("8"), scalar(8), scalar(True)
    ('vllm/vllm-openai:v0.11.0', '"no"', '"8"', '8', 'true')
    """
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value == value.strip()
        return value if plain and value.lower() not in _WORDS else json.dumps(value)
    return json.dumps(value)


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, Noted):
            yield from comment(inner.note, indent)
            inner = inner.value
        yield from _entry(f"{indent}{scalar(key)}:", inner, indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value:
            yield head
            yield from _mapping(value, indent + "  ")
        else:
            yield f"{head} {{}}"
    elif isinstance(value, (list, tuple)):
        if value:
            yield head
            yield from _items(value, indent + "  ")
        else:
            yield f"{head} []"
    elif isinstance(value, str) and "\n" in value:
        yield f"{head} |"
        yield from (f"{indent}  {line}".rstrip() for line in value.rstrip("\n").split("\n"))
    else:
        yield f"{head} {scalar(value)}"


def _items(values: Sequence[Any], indent: str) -> Iterator[str]:
    for item in values:
        if isinstance(item, Noted):
            yield from comment(item.note, indent)
            item = item.value
        if isinstance(item, Mapping):
            lines = list(_mapping(item, indent + "  "))
            # The dash stands before the first key, wherever a comment pushed it.
            first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("#"))
            yield from (line[2:] if i < first else line for i, line in enumerate(lines[:first]))
            yield f"{indent}- {lines[first].lstrip()}"
            yield from lines[first + 1 :]
        else:
            yield f"{indent}- {scalar(item)}"
