"""Reading YAML and JSON files so that every fault has a file, a line and a column.

Scalars follow JSON and YAML 1.2: ``on`` is a string, ``12:30`` is a string, ``010`` is refused
by whoever wanted a number. Duplicate keys, merge keys, tags, deep nesting and alias bombs are
errors, found before anything recursive sees the text. The document is read from the node tree,
so values and positions cannot disagree.
"""

from __future__ import annotations

import re
from collections import Counter
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
MAX_DIGITS = 32

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_JSON_SHAPE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
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
    def root(self) -> yaml.Node | None:
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
        node = self.root
        mark = node.start_mark if node is not None else None
        for step in path:
            found = _child(node, step)
            if found is not None:
                node, mark = found
        return _location(self.file, mark)


def _location(file: str, mark: Any) -> Location:
    return Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Mark] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return value, key.start_mark
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark
    return None


def read_text(
    path: Path, *, what: str = "a specification", most: int = MAX_FILE_BYTES, strict: bool = True
) -> str:
    """The text of a UTF-8 file of bounded size; not ``strict`` lets odd bytes through as `�`.

    Raises CapplanError when the file is missing, unreadable, too large, or not text.
    """
    location = Location(str(path))
    try:
        if path.is_dir():
            raise CapplanError(
                "this is a folder, not a file", location=location, hint="name a file in it"
            )
        if not path.exists():
            raise CapplanError("there is no such file", location=location, hint="check the path")
        if not path.is_file():
            raise CapplanError("this is a device or a pipe, not a file", location=location)
        size = path.stat().st_size
        if size > most:
            advice = "; give the config, not the weights" if strict else ""
            raise CapplanError(
                f"the file is too large to be {what} ({size:,} bytes)",
                location=location,
                hint=f"the limit is {most:,} bytes{advice}",
            )
        # utf-8-sig: Windows editors put a byte-order mark first.
        return path.read_text(encoding="utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError as error:
        # A lone carriage return ends a line too.
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise CapplanError(
            "the file is not UTF-8 text",
            location=Location(str(path), line, column),
            hint="save it as UTF-8",
        ) from None
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the name.
        reason = getattr(error, "strerror", None) or str(error)
        raise CapplanError(f"the file cannot be read: {reason}", location=location) from None


def read_yaml(path: Path) -> Document:
    """Parse a YAML file; raises CapplanError with line and column."""
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, file: str) -> Document:
    """The same of a text; ``file`` is what places in it are named by."""
    try:
        _check_shape(text, file)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        location = _location(file, error.problem_mark or error.context_mark)
        reason = error.problem or "unreadable"
        if reason == "second occurrence":
            reason = "this anchor is defined a second time"
        raise CapplanError(f"this is not valid YAML: {reason}", location=location) from None
    except yaml.reader.ReaderError as error:
        # The first of its kind; the error's own position counts bytes or characters.
        place = _at(text, file, text.find(chr(error.character)))
        raise CapplanError(f"this is not valid YAML: {error.reason}", location=place) from None
    except (yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "unreadable"
        raise CapplanError(f"this is not valid YAML: {reason}", location=Location(file)) from None
    if root is None:
        raise CapplanError("the file is empty", location=Location(file))
    document = Document(file, text, _Builder(file).build(root))
    document.__dict__["root"] = root
    return document


def read_json(path: Path) -> Document:
    """Parse a JSON file; raises CapplanError with line and column."""
    import json  # few questions bring a JSON file

    text = read_text(path)
    file = str(path)
    _check_json_shape(text, file)

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            location = _location(file, _second(Document(file, text, None).root, twice))
            raise CapplanError(
                f"the key `{twice}` stands twice", location=location, hint="leave one of them out"
            )
        return found

    try:
        data = json.loads(text, object_pairs_hook=refuse_duplicates, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        raise CapplanError(
            f"this is not valid JSON: {error.msg[0].lower()}{error.msg[1:]}",
            location=Location(file, error.lineno, error.colno),
        ) from None
    return Document(file, text, data)


def _whole_number(text: str) -> int | str:
    """A longer one is no quantity of this world: it stays text, and its field refuses it."""
    return int(text) if len(text) <= MAX_DIGITS else text


def _at(text: str, file: str, position: int) -> Location:
    """Line and column of a character."""
    line = text.count("\n", 0, position) + 1
    return Location(file, line, position - text.rfind("\n", 0, position))


def _second(node: yaml.Node | None, name: str) -> Any:
    """The mark of a key that stands for the second time in one mapping, or None."""
    if isinstance(node, yaml.MappingNode):
        marks = [key.start_mark for key, _ in node.value if key.value == name]
        if len(marks) > 1:
            return marks[1]
        children = [value for _, value in node.value]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    return next(filter(None, (_second(child, name) for child in children)), None)


def _check_json_shape(text: str, file: str) -> None:
    """Bound depth and size on the brackets, before a parser sees the text."""
    depth = num_nodes = 0
    for match in _JSON_SHAPE.finditer(text):
        sign = match[0]
        if sign[0] == '"':
            continue
        num_nodes += 1
        depth += {"[": 1, "{": 1, "]": -1, "}": -1, ",": 0}[sign]
        if depth > MAX_DEPTH or num_nodes > MAX_NODES:
            fault = _out_of_shape(depth > MAX_DEPTH)
            fault.location = _at(text, file, match.start())
            raise fault


def _out_of_shape(too_deep: bool) -> CapplanError:
    if too_deep:
        return CapplanError("this is nested too deeply", hint=f"the limit is {MAX_DEPTH} levels")
    hint = f"the limit is {MAX_NODES:,} values"
    return CapplanError("this is too much data for a specification", hint=hint)


def _check_shape(text: str, file: str) -> None:
    """Bound depth, size and aliases on the event stream; refuse tags and further documents."""
    depth = num_aliases = num_nodes = num_documents = 0
    fault: CapplanError | None = None
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            num_nodes += 1
            num_aliases += isinstance(event, yaml.AliasEvent)
            depth += isinstance(event, yaml.CollectionStartEvent)
            if getattr(event, "tag", None):
                fault = CapplanError(
                    "tags (`!...`) are not supported", hint="write the value itself"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            num_documents += 1
        if depth > MAX_DEPTH or num_nodes > MAX_NODES:
            fault = _out_of_shape(depth > MAX_DEPTH)
        if num_aliases > MAX_ALIASES:
            hint = f"the limit is {MAX_ALIASES}"
            fault = CapplanError("there are too many aliases", hint=hint)
        if num_documents > 1:
            fault = CapplanError("a second document starts here", hint="write one a file")
        if fault is not None:
            fault.location = _location(file, event.start_mark)
            raise fault


class _Builder:
    """Plain data from a node tree, with YAML's surprises refused."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.num_nodes = 0

    def build(self, node: yaml.Node, depth: int = 0) -> Any:
        self.num_nodes += 1
        # Aliases add depth of their own, without end where one names what it stands in.
        if depth > MAX_DEPTH:
            raise self._fault(node, "this is nested too deeply, through aliases")
        if self.num_nodes > MAX_NODES:
            raise self._fault(node, "this expands to too much data, through aliases")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, depth + 1) for item in node.value]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, "a key must be a plain word")
            if key.value == "<<" and not key.style:
                raise self._fault(key, "merge keys (`<<`) are not supported")
            if key.value in found:
                raise self._fault(key, f"the key `{key.value}` stands twice in one mapping")
            found[key.value] = self.build(value, depth)
        return found

    def _fault(self, node: yaml.Node, message: str) -> CapplanError:
        return CapplanError(message, location=_location(self.file, node.start_mark))


def _scalar(node: yaml.Node) -> Any:
    text: str = node.value
    if getattr(node, "style", None):  # "" or None is plain
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return _whole_number(text)
    return float(text) if _FLOAT.fullmatch(text) and not _leading_zero(text) else text


def _leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
