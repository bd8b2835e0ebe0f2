"""YAML as a tree of nodes that know where they stand: anchors, merges and all.

Built from the event stream, so that depth and size are bounded before anything recursive sees
the text; aliases share the node that they name, so a bomb of aliases takes no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from capplan.check.scalars import scalar_text
from capplan.check.source import Source, Text

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 60
MAX_NODES = 300_000
# What following aliases may visit: a tree of them is larger than the file.
MAX_VISITS = 50_000
MAX_VISITS_OF_NODE = 8


class UnreadableError(Exception):
    """The text is no YAML that we take; ``offset`` is where."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, a mapping or a list; the others' fields are empty."""

    source: Source
    kind: str  # scalar | mapping | list
    start: int
    end: int
    value: str = ""
    style: str | None = None
    pairs: list[tuple[Node, Node]] | None = None
    items: list[Node] | None = None
    text_of: Text | None = None
    _keys: dict[str, tuple[Node, Node]] | None = None

    @property
    def offset(self) -> int:
        """Where it starts in the file."""
        if self.text_of is not None:
            return self.text_of.at(self.start)
        return self.start

    def text(self) -> Text:
        """A scalar's characters, each with its place in the file."""
        held = self.text_of
        raw = self.source.text if held is None else held.chars
        inner = scalar_text(self.source, raw, self.start, self.end, self.value, self.style)
        if held is None:
            return inner
        return Text(self.source, inner.chars, [held.at(at) for at in inner.offsets])

    def entries(self) -> dict[str, tuple[Node, Node]]:
        """The entries of a mapping by name, merges (`<<`) filled in; empty for others."""
        if self._keys is None:
            self._keys = {}  # a mapping that merges itself stops here
            self._keys = _entries(self, 0)
        return self._keys

    def get(self, *path: str | int) -> Node | None:
        """The value at a path of keys and indices, or None."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            if isinstance(step, int):
                items = node.items or []
                node = items[step] if -len(items) <= step < len(items) else None
            else:
                entry = node.entries().get(step)
                node = entry[1] if entry else None
        return node

    def key(self, name: str) -> Node | None:
        """The key itself: where a setting is named."""
        entry = self.entries().get(name)
        return entry[0] if entry else None

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.style is None and self.value in ("", "~", "null")

    def word(self, *path: str | int) -> str | None:
        """The scalar at a path as text, or None where there is none or it is null."""
        node = self.get(*path)
        if node is None or node.kind != "scalar" or node.is_null:
            return None
        return node.value


def _entries(node: Node, depth: int) -> dict[str, tuple[Node, Node]]:
    found: dict[str, tuple[Node, Node]] = {}
    merged: list[Node] = []
    for key, value in node.pairs or ():
        if key.kind != "scalar":
            continue
        if key.value == "<<" and key.style is None:
            merged.extend(value.items or [value])
        else:
            found[key.value] = (key, value)
    for base in merged:
        if depth < MAX_DEPTH and base is not node:
            for name, entry in _entries(base, depth + 1).items():
                found.setdefault(name, entry)
    return found


def walk(root: Node) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """Mappings and lists with their ancestors, nearest last; what aliases repeat, a few times."""
    budget = MAX_VISITS
    visits: Counter[int] = Counter()
    stack: list[tuple[tuple[Node, ...], Node]] = [((), root)]
    while stack and budget:
        above, node = stack.pop()
        budget -= 1
        visits[id(node)] += 1
        if visits[id(node)] > MAX_VISITS_OF_NODE:
            continue
        yield above, node
        if node.kind == "scalar" or len(above) > MAX_DEPTH:
            continue
        inner = (*above, node)
        if node.kind == "mapping":
            children = [value for _, value in node.entries().values()]
        else:
            children = node.items or []
        stack.extend((inner, child) for child in reversed(children) if child.kind != "scalar")


def parse(source: Source, text: Text | None = None) -> list[Node]:
    """The documents of a file, or of a text inside it; raises UnreadableError."""
    chars = text.chars if text is not None else source.text
    try:
        return _build(source, chars, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or "unreadable"
        raise UnreadableError(reason, mark.index if mark else 0) from None
    except yaml.reader.ReaderError as error:
        raise UnreadableError(error.reason, 0) from None
    except (yaml.YAMLError, RecursionError, UnicodeError, ValueError) as error:
        raise UnreadableError(str(error).split("\n")[0] or "unreadable", 0) from None


def _build(source: Source, chars: str, text: Text | None) -> list[Node]:
    documents: list[Node] = []
    anchors: dict[str, Node] = {}
    stack: list[tuple[Node, list[Node]]] = []
    num_nodes = 0
    events: Any = yaml.parse(chars, Loader=_Loader)  # the stubs leave out the marks
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            anchors = {}
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            node, children = stack.pop()
            _close(node, children, _index(event.end_mark))
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        num_nodes += 1
        if num_nodes > MAX_NODES:
            raise UnreadableError(f"more than {MAX_NODES:,} values", _index(event.start_mark))
        node = _node(source, event, text, anchors)
        if stack:
            stack[-1][1].append(node)
        else:
            documents.append(node)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(stack) >= MAX_DEPTH:
                raise UnreadableError(f"nested deeper than {MAX_DEPTH}", _index(event.start_mark))
            stack.append((node, []))
    return documents


def _index(mark: Any) -> int:
    return int(mark.index)


def _node(source: Source, event: Any, text: Text | None, anchors: dict[str, Node]) -> Node:
    start, end = _index(event.start_mark), _index(event.end_mark)
    if isinstance(event, yaml.AliasEvent):
        known = anchors.get(event.anchor or "")
        if known is None:
            raise UnreadableError(f"`*{event.anchor}` names no anchor", start)
        return known
    if isinstance(event, yaml.ScalarEvent):
        style = event.style or None
        # A tag (`!Ref x`) makes something else of the text than what stands there.
        node = Node(source, "scalar", start, end, event.value, style, text_of=text)
    else:
        kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = Node(source, kind, start, end, text_of=text)
    if event.anchor:
        anchors[event.anchor] = node
    return node


def _close(node: Node, children: list[Node], end: int) -> None:
    node.end = end
    if node.kind == "mapping":
        node.pairs = list(zip(children[::2], children[1::2], strict=False))
    else:
        node.items = children
