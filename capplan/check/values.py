"""Values as written and as they come out once variables are filled in; unknown is a value too.

``HOLE`` stands where something is set outside of what we read: a chart value, a variable of the
cluster, the output of a command. It is never guessed. What filled a place in, or why it stayed
open, is remembered by the place (``Scope.marks``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from capplan.check.source import Source, Text
from capplan.errors import Location

HOLE = "\ufffc"
# Templates (`{{ }}`) that had to be masked for the YAML to be read: see documents.
MASK = "\ue000"
MAX_VALUE_CHARS = 20_000

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|" + MASK + "+", re.DOTALL)
_HELM_VALUE = re.compile(
    r"\{\{-?\s*\$?\.Values\.([\w.-]+)\s*(?:\|\s*(?:quote|int|toString)\s*)*-?\}\}"
)
_KUBERNETES = re.compile(r"\$\$\(|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(:?[-=?+])?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Variable:
    """What a name stands for; ``text`` may hold holes. ``how`` says where it was set."""

    text: str
    how: str
    may_differ: bool = False  # set in a branch that may not be taken
    choices: tuple[str, ...] = ()  # all that the branches set it to


@dataclass
class Scope:
    """The variables that a container or a script sees, and what was made of each place."""

    source: Source
    variables: dict[str, Variable] = field(default_factory=dict)
    arrays: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    marks: dict[int, str] = field(default_factory=dict)
    choices: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def child(self) -> Scope:
        """A scope whose changes do not come back."""
        variables, arrays = dict(self.variables), dict(self.arrays)
        return Scope(self.source, variables, arrays, self.overrides, self.marks, self.choices)

    def find(self, name: str) -> Variable | None:
        if name in self.overrides:
            return Variable(self.overrides[name], f"`{name}` = `{self.overrides[name]}` as given")
        return self.variables.get(name)

    def fill(self, name: str, written: str, at: int) -> str:
        """The text of a variable, a hole where it is unknown; ``at`` is remembered for it."""
        found = self.find(name)
        if found is None:
            self.marks[at] = f"`{written}` is set outside this file"
            return HOLE
        if found.may_differ:
            self.marks[at] = f"`{written}` depends on a branch of the script"
            self.choices[at] = found.choices
            return HOLE
        self.marks[at] = found.how
        return found.text


@dataclass(frozen=True, slots=True)
class Value:
    """A text as it comes out, each character with its place; ``raw`` is how it was written."""

    raw: str
    text: Text
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    may_differ: bool = False
    choices: tuple[str, ...] = ()  # where it is one of several texts

    @property
    def chars(self) -> str:
        return self.text.chars

    @property
    def known(self) -> bool:
        return HOLE not in self.text.chars and MASK not in self.text.chars

    @property
    def word(self) -> str | None:
        """The text, or None where part of it is unknown."""
        return self.text.chars if self.known else None

    @property
    def offset(self) -> int:
        return self.text.at(0)

    @property
    def location(self) -> Location:
        return self.text.source.location(self.offset)

    def part(self, start: int, end: int | None = None) -> Value:
        """Some characters of it, as a value."""
        end = len(self.text) if end is None else end
        text = self.text.part(start, end)
        return Value(_raw(text) or text.chars, text, self.notes, self.reasons, self.may_differ)


def value_of(text: Text, scope: Scope, *, may_differ: bool = False) -> Value:
    """A value from a text in which the variables are filled in."""
    notes: list[str] = []
    reasons: list[str] = []
    for char, at in zip(text.chars, text.offsets, strict=True):
        mark = scope.marks.get(at)
        if mark is not None:
            where = reasons if char == HOLE else notes
            if mark not in where:
                where.append(mark)
    # Where a hole came out of a variable, its mark says which.
    choices = scope.choices.get(text.at(0), ()) if text.chars == HOLE else ()
    return Value(_raw(text) or text.chars, text, tuple(notes), tuple(reasons), may_differ, choices)


def literal(source: Source, chars: str, at: int) -> Value:
    """A value that stands nowhere as such, such as one that follows from another field."""
    return Value(chars, Text(source, chars, [at] * len(chars)))


def _raw(text: Text) -> str:
    """How a text was written: the file from its first to its last character."""
    if not text.offsets:
        return ""
    first, last = text.offsets[0], text.offsets[-1]
    if not 0 <= last - first < MAX_VALUE_CHARS:
        return ""
    written = text.source.text
    end = last + 1
    if written[last] == "$":
        end = _reference_end(written, last)
    elif written.startswith("{{", last):
        end = written.find("}}", last) + 2
    return written[first:end]


def _reference_end(written: str, at: int) -> int:
    """Past a reference to a variable that starts at ``at``."""
    if written.startswith("$$", at):
        return _reference_end(written, at + 1)
    if written[at + 1 : at + 2] in ("{", "("):
        return closing(written, at + 1, len(written)) + 1
    name = _NAME.match(written, at + 1)
    return name.end() if name else at + 2


_CLOSES = {"{": "}", "(": ")"}


def closing(chars: str, at: int, end: int) -> int:
    """The index of the bracket that closes the one at ``at``, or ``end`` - 1."""
    opens = chars[at]
    depth = 0
    for i in range(at, min(end, at + MAX_VALUE_CHARS)):
        if chars[i] == opens:
            depth += 1
        elif chars[i] == _CLOSES[opens]:
            depth -= 1
            if depth == 0:
                return i
    return max(at, end - 1)


class _Output:
    """Characters with their places, as they are put together."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.chars: list[str] = []
        self.offsets: list[int] = []

    def copy(self, text: Text, start: int, end: int) -> None:
        self.chars.append(text.chars[start:end])
        self.offsets.extend(text.offsets[start:end])

    def put(self, chars: str, at: int) -> None:
        self.chars.append(chars)
        self.offsets.extend([at] * len(chars))

    def text(self) -> Text:
        return Text(self.source, "".join(self.chars), self.offsets)


def fill_templates(text: Text, scope: Scope) -> Text:
    """`{{ .Values.tp }}` from what was given, else a hole."""
    if "{{" not in text.chars and "{%" not in text.chars and MASK not in text.chars:
        return text
    output = _Output(text.source)
    last = 0
    for match in _TEMPLATE.finditer(text.chars):
        output.copy(text, last, match.start())
        last = match.end()
        at = text.at(match.start())
        written = text.source.text[at : text.at(match.end() - 1) + 1]
        helm = _HELM_VALUE.fullmatch(written)
        given = scope.find(f"Values.{helm[1]}") or scope.find(helm[1]) if helm else None
        if given is not None:
            scope.marks[at] = given.how
            output.put(given.text, at)
        else:
            short = written if len(written) <= 60 else written[:57] + "..."
            scope.marks[at] = f"`{short}` is filled in by a template"
            output.put(HOLE, at)
    output.copy(text, last, len(text))
    return output.text()


def fill_kubernetes(text: Text, scope: Scope) -> Text:
    """`$(VAR)` as Kubernetes fills it in; `${VAR}`, which something before it has to fill in."""
    text = fill_templates(text, scope)
    if "$" not in text.chars:
        return text
    output = _Output(text.source)
    last = 0
    for match in _KUBERNETES.finditer(text.chars):
        output.copy(text, last, match.start())
        last = match.end()
        if match[1] is None:
            output.put("$(", text.at(match.start() + 1))
        else:
            at = text.at(match.start())
            output.put(scope.fill(match[1], match[0], at), at)
    output.copy(text, last, len(text))
    return output.text()


def fill_braces(text: Text, scope: Scope, *, escaped: bool, depth: int = 0) -> Text:
    """`${VAR:-default}` and `$VAR`; with ``escaped``, `$$` is a dollar for the container."""
    text = fill_templates(text, scope)
    chars = text.chars
    if "$" not in chars or depth > 8:
        return text
    output = _Output(text.source)
    at = 0
    while at < len(chars):
        dollar = chars.find("$", at)
        if dollar < 0 or dollar + 1 == len(chars):
            break
        output.copy(text, at, dollar)
        place = text.at(dollar)
        following = chars[dollar + 1]
        name = _NAME.match(chars, dollar + 1)
        if following == "$" and escaped:
            output.copy(text, dollar + 1, dollar + 2)
            at = dollar + 2
        elif following == "{":
            end = closing(chars, dollar + 1, len(chars))
            inner = text.part(dollar + 2, end)
            _put_braced(output, inner, scope, place, chars[dollar : end + 1], escaped, depth)
            at = end + 1
        elif name and escaped:
            output.put(scope.fill(name[0], f"${name[0]}", place), place)
            at = name.end()
        else:
            output.copy(text, dollar, dollar + 1)
            at = dollar + 1
    output.copy(text, at, len(chars))
    return output.text()


def _put_braced(
    output: _Output, inner: Text, scope: Scope, place: int, written: str, escaped: bool, depth: int
) -> None:
    match = _BRACED.match(inner.chars)
    if match is None:
        scope.marks[place] = f"`{written[:60]}` is filled in elsewhere"
        output.put(HOLE, place)
        return
    name, operator = match[1], match[2]
    found = scope.find(name)
    plain = match.end() == len(inner)
    if found is None and operator in ("-", ":-", "=", ":="):
        default = fill_braces(
            inner.part(match.end(), len(inner)), scope, escaped=escaped, depth=depth + 1
        )
        scope.marks[place] = f"the default of `{written[:80]}`"
        output.put(default.chars, place)
    elif found is not None and (plain or operator is not None) and "+" not in (operator or ""):
        output.put(scope.fill(name, written, place), place)
    else:
        scope.marks[place] = f"`{written[:60]}` is set outside this file"
        output.put(HOLE, place)
