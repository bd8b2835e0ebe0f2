"""Where each character of a YAML scalar stands in the file: escapes, folding and block styles."""

from __future__ import annotations

import re
from collections.abc import Sequence

from capplan.check.source import Source, Text

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\n])")
_FOLD = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
_SPACE = " \t\r\n"


def scalar_text(
    source: Source, raw: str, start: int, end: int, value: str, style: str | None
) -> Text:
    """The value of a scalar whose spelling is ``raw[start:end]``."""
    if raw[start : start + len(value)] == value and style is None:
        return Text(source, value, range(start, start + len(value)))
    if style in ("|", ">"):
        return Text(source, value, _block(raw, start, end, value))
    quoted = style in ('"', "'")
    return Text(source, value, _flow(raw, start + quoted, end - quoted, value, style))


def _flow(raw: str, at: int, end: int, value: str, style: str | None) -> Sequence[int]:
    """Plain and quoted scalars: breaks fold to spaces, escapes to one character."""
    if raw[at : at + len(value)] == value:
        return range(at, at + len(value))
    offsets: list[int] = []
    while len(offsets) < len(value):
        if style == '"':
            at = _skip_joins(raw, at, end)
        fold = _FOLD.match(raw, at, end)
        if fold and fold.end() > at:
            # One break makes a space, more make one break fewer.
            num_breaks = fold[0].count("\n")
            offsets.extend([at] * max(1, num_breaks - 1))
            at = fold.end()
            continue
        offsets.append(min(at, max(end - 1, 0)))
        if style == '"' and at < end and raw[at] == "\\":
            escape = _ESCAPE.match(raw, at)
            at = escape.end() if escape else at + 1
        elif style == "'" and raw.startswith("''", at):
            at += 2
        else:
            at += 1
    return offsets[: len(value)]


def _skip_joins(raw: str, at: int, end: int) -> int:
    r"""Past `\` at the end of a line and the indentation of the next."""
    while at + 1 < end and raw[at] == "\\" and raw[at + 1] in "\r\n":
        at += 1
        while at < end and raw[at] in _SPACE:
            at += 1
    return at


def _block(raw: str, start: int, end: int, value: str) -> list[int]:
    """Literal and folded blocks: lines without their indentation."""
    at = raw.find("\n", start, end) + 1
    if not at:
        return [start] * len(value)
    body = raw[at:end]
    indents = [len(ln) - len(ln.lstrip(" ")) for ln in body.split("\n") if ln.strip(" \r")]
    explicit = re.match(r"[|>][-+]?([1-9])", raw[start : start + 4])
    indent = min(indents, default=0) if explicit is None else min([*indents, 99])
    offsets: list[int] = []
    at = _line_start(raw, at, end, indent)
    for char in value:
        if char == "\n":
            while at < end and raw[at] in " \t\r" and raw[at] != "\n":
                at += 1
            offsets.append(min(at, end))
            at = _line_start(raw, at + 1, end, indent)
        elif char == " " and at < end and raw[at] in "\r\n":
            offsets.append(at)
            at = _line_start(raw, raw.find("\n", at) + 1, end, indent)
        else:
            while at < end and raw[at] != char and raw[at] in _SPACE:
                at += 1
            offsets.append(min(at, max(end - 1, 0)))
            at += 1
    return offsets


def _line_start(raw: str, at: int, end: int, indent: int) -> int:
    taken = 0
    while taken < indent and at < end and raw[at] == " ":
        at += 1
        taken += 1
    return at
