"""Engine options out of the words of a command line, or of a mapping of settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capplan.check.flag_tables.table import FlagTable
from capplan.check.nodes import Node
from capplan.check.source import Text
from capplan.check.values import HOLE, Scope, Value, fill_kubernetes, literal, value_of
from capplan.errors import Location

_FLAG = re.compile(r"--?[A-Za-z]")
_TRUE = {"true", "True", "TRUE", "yes", "on", "1"}
_FALSE = {"false", "False", "FALSE", "no", "off", "0"}
MAX_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. ``name`` is the engine's own, None where it knows no such option.

    ``value`` is None for a switch; ``negated`` is `--no-x`. ``candidates``: what an abbreviation
    that fits several could mean.
    """

    written: str
    name: str | None
    meaning: str | None
    value: Value | None
    place: Value
    negated: bool = False
    inverted: bool = False
    candidates: tuple[str, ...] = ()
    from_mapping: bool = False

    @property
    def location(self) -> Location:
        return self.place.location

    @property
    def known(self) -> bool:
        return self.value is None or (self.value.known and not self.value.may_differ)

    @property
    def certain(self) -> bool:
        return self.known and not self.place.may_differ

    @property
    def text(self) -> str | None:
        """The value, or None where it is unknown; a switch is `true` or `false`."""
        if self.value is None:
            return "false" if self.negated != self.inverted else "true"
        return self.value.word

    @property
    def raw(self) -> str:
        if self.value is None:
            return str(self.text)
        return self.value.raw

    @property
    def switch(self) -> bool | None:
        """On or off, or None where it is neither."""
        if self.value is None:
            return self.negated == self.inverted
        word = self.value.word
        if word in _TRUE:
            return not self.inverted
        return self.inverted if word in _FALSE else None


@dataclass(frozen=True, slots=True)
class ReadFlags:
    """Of a command line: options, words that belong to none, and words that may hide some."""

    flags: tuple[Flag, ...]
    positional: tuple[Value, ...]
    hidden: tuple[Value, ...]

    def model(self, table: FlagTable, words: Sequence[Value]) -> Value | None:
        """The model where it stands without an option: `vllm serve MODEL`."""
        if not table.positional_model:
            return None
        if self.positional:
            return self.positional[0]
        first = words[0] if words else None
        return first if first is not None and first in self.hidden else None


def read_flags(words: Sequence[Value], table: FlagTable) -> ReadFlags:
    """The options of a command line, as the engine's own parser would see them."""
    flags: list[Flag] = []
    positional: list[Value] = []
    hidden: list[Value] = []
    at = 0
    words = words[:MAX_WORDS]
    while at < len(words):
        word = words[at]
        at += 1
        if not _FLAG.match(word.chars):
            if not word.chars.startswith(HOLE):
                positional.append(word)
            elif not _harmless(word, table):
                hidden.append(word)
            continue
        written, equals, _ = word.chars.partition("=")
        name, negated, candidates = _find(written, table)
        value = word.part(len(written) + 1) if equals else None
        if value is None and not negated:
            taken = _taken(words, at, name, table)
            value = _joined(words[at : at + taken]) if taken else None
            at += taken
        flags.append(
            _flag(written, name, value, word.part(0, len(written)), table, negated, candidates)
        )
    return ReadFlags(tuple(flags), tuple(positional), tuple(hidden))


def _harmless(word: Value, table: FlagTable) -> bool:
    """One of several texts of a script, none of which sets anything that matters here."""
    if not word.choices:
        return False
    for text in word.choices:
        words = text.split()
        for before, part in zip(["--", *words], words, strict=False):
            if part.startswith(HOLE) and not before.startswith("--"):
                return False
            name = _find(part.partition("=")[0], table)[0] if _FLAG.match(part) else None
            if name is not None and table.meanings.get(name) is not None:
                return False
    return True


def _find(written: str, table: FlagTable) -> tuple[str | None, bool, tuple[str, ...]]:
    if not written.startswith("--"):
        if written in table.short:
            return table.short[written], False, ()
        return (
            (table.short["-O"], False, ())
            if written[:2] == "-O" and "-O" in table.short
            else (None, False, ())
        )
    return table.find(written[2:])


def _taken(words: Sequence[Value], at: int, name: str | None, table: FlagTable) -> int:
    """How many of the following words are the option's value."""
    following = words[at].chars if at < len(words) else None
    if following is None:
        return 0
    if name is not None and (name in table.switches or name in table.booleans):
        # Old versions take `--enable-chunked-prefill false` as well.
        return int(name in table.booleans and following in _TRUE | _FALSE)
    if _FLAG.match(following):
        return 0
    if name is not None and name in table.several:
        num = 1
        while at + num < len(words) and not _FLAG.match(words[at + num].chars):
            num += 1
        return num
    # An option that we do not know most likely takes the word after it.
    return 1


def _joined(words: Sequence[Value]) -> Value:
    first = words[0]
    if len(words) == 1:
        return first
    chars = " ".join(word.chars for word in words)
    offsets: list[int] = []
    for word in words:
        offsets.extend([*word.text.offsets, word.text.at(len(word.text))])
    text = Text(first.text.source, chars, offsets[: len(chars)])
    notes = tuple(note for word in words for note in word.notes)
    reasons = tuple(reason for word in words for reason in word.reasons)
    return Value(" ".join(word.raw for word in words), text, notes, reasons)


def _flag(
    written: str,
    name: str | None,
    value: Value | None,
    place: Value,
    table: FlagTable,
    negated: bool = False,
    candidates: tuple[str, ...] = (),
    from_mapping: bool = False,
) -> Flag:
    meaning = table.meanings.get(name) if name else None
    inverted = name in table.inverted if name else False
    return Flag(written, name, meaning, value, place, negated, inverted, candidates, from_mapping)


def mapping_flags(node: Node, table: FlagTable, scope: Scope) -> Iterator[Flag]:
    """The settings of a mapping (`engine_kwargs:`, `vllm:`), in whatever case they are written."""
    for written, (key, child) in node.entries().items():
        if child.is_null:
            continue
        name, negated, candidates = table.find(dashed(written))
        place = literal(node.source, written, key.offset)
        value = setting_value(child, scope)
        yield _flag(written, name, value, place, table, negated, candidates, from_mapping=True)


def one_setting(name: str, key: Node, child: Node, table: FlagTable, scope: Scope) -> Flag:
    """An option that a field of another name sets."""
    place = literal(key.source, key.value, key.offset)
    value = setting_value(child, scope)
    return _flag(key.value, name, value, place, table, from_mapping=True)


def value_of_meaning(flags: Sequence[Flag], meaning: str) -> Value | None:
    """The value of the last option of a meaning that has one, as the engine takes it."""
    found = [flag.value for flag in flags if flag.meaning == meaning and flag.value is not None]
    return found[-1] if found else None


def renamed_settings(
    holder: Node | None, options: Mapping[str, str], table: FlagTable, scope: Scope
) -> Iterator[Flag]:
    """The options that fields of other names set, of those that the engine has.

    ``options`` by field: `tensor: tensor-parallel-size`.
    """
    entries = holder.entries() if holder is not None else {}
    known = table.names()
    for field, option in options.items():
        if field in entries and option in known:
            yield one_setting(option, *entries[field], table, scope)


def setting_value(child: Node, scope: Scope) -> Value:
    if child.kind == "scalar":
        return value_of(fill_kubernetes(child.text(), scope), scope)
    written = child.source.text[child.offset : child.offset + max(0, child.end - child.start)]
    return literal(child.source, written or "{}", child.offset)


def dashed(name: str) -> str:
    """`tensorParallelSize`, `tensor_parallel_size` and `tensor-parallel-size` alike.

    >>> dashed("maxModelLen"), dashed("gpu_memory_utilization")
    ('max-model-len', 'gpu-memory-utilization')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return spaced.replace("_", "-").lower()
