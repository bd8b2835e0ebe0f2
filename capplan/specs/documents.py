"""Reading YAML and JSON files so that every fault has a file, a line and a column.

Scalars follow JSON and YAML 1.2: ``on`` is a string, ``12:30`` is a string, ``010`` is refused
by whoever wanted a number. Duplicate keys, merge keys, tags, deep nesting and alias bombs are
errors. The document is read from the node tree, so values and positions cannot disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from capplan.errors import CapplanError, Location

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 40
MAX_ALIASES = 64
# An alias copies what it names: 64 of them over a large anchor would still be a bomb.
MAX_NODES = 200_000

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,30})")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A parsed file: ``data`` is plain dicts, lists and scalars."""

    file: str
    text: str
    data: Any

    @cached_property
    def _root(self) -> yaml.Node | None:
        # JSON files get here only after a fault; most JSON is YAML, and where it is not (tabs)
        # the message simply has no line.
        try:
            return yaml.compose(self.text, Loader=_Loader)
        except (yaml.YAMLError, RecursionError):
            return None

    def locate(self, path: Sequence[str | int]) -> Location:
        """Where the value at ``path`` stands, or the nearest parent that exists.

        Steps that name no key (pydantic adds the tag of a union) are passed over.
        """
        node = self._root
        mark = node.start_mark if node is not None else None
        for step in path:
            found = _child(node, step)
            if found is not None:
                node, mark = found
        if mark is None:
            return Location(self.file)
        return Location(self.file, mark.line + 1, mark.column + 1)


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Mark] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return value, key.start_mark
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark
    return None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file of bounded size.

    Raises CapplanError when the file is missing, unreadable, too large, or not text.
    """
    location = Location(str(path))
    try:
        if path.is_dir():
            raise CapplanError("is a folder, not a file", location=location)
        if not path.is_file():
            raise CapplanError("no such file", location=location, hint="check the path")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise CapplanError(
                f"is too large to be a specification ({size:,} bytes)",
                location=location,
                hint=f"the limit is {MAX_FILE_BYTES:,} bytes; give the config, not the weights",
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CapplanError(
            f"is not UTF-8 text (byte {error.start:,})", location=location
        ) from None
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the name.
        reason = getattr(error, "strerror", None) or str(error)
        raise CapplanError(f"cannot be read: {reason}", location=location) from None


def read_yaml(path: Path) -> Document:
    """Parse a YAML file; raises CapplanError with line and column."""
    text = read_text(path)
    file = str(path)
    try:
        _check_shape(text, file)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        raise CapplanError(f"is not valid YAML: {error.problem}", location=location) from None
    except (yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "unreadable"
        raise CapplanError(f"is not valid YAML: {reason}", location=Location(file)) from None
    if root is None:
        raise CapplanError("is empty", location=Location(file))
    document = Document(file, text, _Builder(file).build(root))
    document.__dict__["_root"] = root
    return document


def read_json(path: Path) -> Document:
    """Parse a JSON file; raises CapplanError with line and column."""
    text = read_text(path)
    file = str(path)

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [key for key, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise CapplanError(f"the key `{twice}` stands twice", location=Location(file))
        return found

    try:
        data = json.loads(text, object_pairs_hook=refuse_duplicates)
    except json.JSONDecodeError as error:
        raise CapplanError(
            f"is not valid JSON: {error.msg[0].lower()}{error.msg[1:]}",
            location=Location(file, error.lineno, error.colno),
        ) from None
    except RecursionError:
        raise CapplanError("is nested too deeply", location=Location(file)) from None
    except ValueError as error:
        raise CapplanError(f"is not valid JSON: {error}", location=Location(file)) from None
    return Document(file, text, data)


def _check_shape(text: str, file: str) -> None:
    """Bound depth and aliases on the event stream, before anything recursive sees the text."""
    depth = aliases = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > MAX_DEPTH or aliases > MAX_ALIASES:
            what = "is nested too deeply" if depth > MAX_DEPTH else "has too many aliases"
            limit = MAX_DEPTH if depth > MAX_DEPTH else MAX_ALIASES
            mark = event.start_mark
            raise CapplanError(
                what,
                location=Location(file, mark.line + 1, mark.column + 1),
                hint=f"the limit is {limit}",
            )


class _Builder:
    """Plain data from a node tree, with YAML's surprises refused."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.num_nodes = 0

    def build(self, node: yaml.Node) -> Any:
        self.num_nodes += 1
        if self.num_nodes > MAX_NODES:
            raise self._fault(node, "expands to too much data (an alias bomb?)")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item) for item in node.value]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, "a key must be a plain word")
            if key.value == "<<" and not key.style:
                raise self._fault(key, "merge keys (`<<`) are not supported")
            if key.value in found:
                raise self._fault(key, f"the key `{key.value}` stands twice in one mapping")
            found[key.value] = self.build(value)
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        text: str = node.value
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._fault(node, f"the tag `{node.tag}` is not supported")
        if getattr(node, "style", None):  # "" or None is plain
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) and not _leading_zero(text) else text

    def _fault(self, node: yaml.Node, message: str) -> CapplanError:
        mark = node.start_mark
        return CapplanError(message, location=Location(self.file, mark.line + 1, mark.column + 1))


def _leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
