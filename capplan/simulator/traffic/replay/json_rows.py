"""Rows of JSON lines, or of one JSON array that is read piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from capplan.simulator.traffic.replay.files import HEAD, MAX_LINE, lines_of, opened
from capplan.simulator.traffic.replay.formats import Columns
from capplan.simulator.traffic.replay.rows import Row, RowError, quoted, tokens_of

Json = dict[str, Any]


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def objects_of(path: Path) -> Iterator[tuple[int, Json | RowError]]:
    """(line, object) of every entry; the line is where it begins."""
    with opened(path) as stream:
        first = stream.read(1)
        while first and first.isspace():
            first = stream.read(1)
        stream.seek(0)
        yield from _of_array(stream) if first == "[" else _of_lines(stream)


def _of_lines(stream: TextIO) -> Iterator[tuple[int, Json | RowError]]:
    for number, line, whole in lines_of(stream):
        if not line.strip():
            continue
        if not whole:
            yield number, RowError("too long", "the line is too long").at(number)
            continue
        try:
            entry = _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            cut = "" if line.endswith("\n") else "; it is the last line: the file was cut off"
            message = f"this is not valid JSON: {_reason(error)}{cut}"
            yield number, RowError("not valid JSON", message).at(number)
            continue
        yield number, _object(entry, number)


def _of_array(stream: TextIO) -> Iterator[tuple[int, Json | RowError]]:
    """The entries of one array; what cannot be read ends it, since nothing tells where to go on."""
    text, at, line = stream.read(HEAD).lstrip("\ufeff"), 0, 1
    opening = True
    while True:
        # Up to the next entry: white space, and the bracket or comma before it.
        while at < len(text) and (text[at].isspace() or text[at] == ("[" if opening else ",")):
            line += text[at] == "\n"
            opening = opening and text[at] != "["
            at += 1
        if at < len(text) and text[at] == "]":
            return
        fault: Exception | None = None
        end = at
        try:
            entry, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            fault = error
        if at < end < len(text):
            yield line, _object(entry, line)
            line += text.count("\n", at, end)
            text, at = (text[end:], 0) if end > HEAD else (text, end)
            continue
        # Twice as much each time, so that a long entry is not read again and again.
        more = stream.read(max(HEAD, len(text) - at)) if len(text) - at < MAX_LINE else ""
        if not more:
            reason = "the file was cut off" if _is_cut(fault, text) else _reason(fault)
            yield line, RowError("not valid JSON", f"this is not valid JSON: {reason}").at(line)
            return
        text, at = text[at:] + more, 0


def _is_cut(fault: Exception | None, text: str) -> bool:
    """Whether a fault at the end of a file is only that something is missing."""
    if not isinstance(fault, json.JSONDecodeError):
        return fault is None
    return fault.pos >= len(text.rstrip()) or fault.msg.startswith("Unterminated")


def _reason(error: Exception | None) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg[0].lower() + error.msg[1:]
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)[:60]


def _object(entry: Any, line: int) -> Json | RowError:
    if isinstance(entry, dict):
        return entry
    return RowError("not an object", f"{quoted(entry)} is not an object of fields").at(line)


def json_rows(
    path: Path,
    columns: Columns,
    read_time: Callable[[object], float] | None,
    where: Mapping[str, str],
) -> Iterator[Row | RowError]:
    """Rows of objects whose fields are lengths."""
    for number, entry in objects_of(path):
        if isinstance(entry, RowError):
            yield entry
            continue
        if any(str(entry.get(name)) != value for name, value in where.items()):
            continue
        try:
            yield Row(
                number,
                read_time(_field(entry, columns.time)) if read_time and columns.time else None,
                tokens_of(_field(entry, columns.prompt), columns.prompt) if columns.prompt else 0,
                tokens_of(_field(entry, columns.output), columns.output, output=True)
                if columns.output
                else 0,
                _ids(entry.get(columns.hash_ids)) if columns.hash_ids else (),
                _session(entry.get(columns.session)) if columns.session else None,
            )
        except RowError as fault:
            yield fault.at(number)


def _field(entry: Json, name: str) -> object:
    if name not in entry:
        raise RowError("with a field missing", f"there is no `{name}` in this row")
    return entry[name]


def _ids(value: Any) -> tuple[int | str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(type(item) in (int, str) for item in value):
        raise RowError("with bad hash ids", "`hash_ids` is not a list of whole numbers or texts")
    return tuple(value)


def _session(value: Any) -> str | None:
    return str(value)[:200] if isinstance(value, (str, int)) else None
