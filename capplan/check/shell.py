"""A shell script as the commands that it would run, without running it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from capplan.check.shell_words import Lexer, Word
from capplan.check.source import Text
from capplan.check.values import Scope, Value, Variable

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_OPENING = {"if", "case", "while", "until", "for", "select"}
_CLOSING = {"fi", "esac", "done"}
_PASSED = {
    "then",
    "else",
    "elif",
    "do",
    "{",
    "}",
    "!",
    "time",
    "[[",
    "in",
    "function",
    "exec",
    "command",
    "builtin",
}
_DECLARING = {"export", "local", "declare", "readonly", "typeset", "env"}
MAX_COMMANDS = 5_000
MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Command:
    """Words of one simple command; ``in_branch`` where it may not run."""

    words: tuple[Value, ...]
    in_branch: bool
    scope: Scope


def commands(text: Text, scope: Scope, positional: tuple[Value, ...] = ()) -> list[Command]:
    """The commands of a script in order; assignments change ``scope`` on the way."""
    return _Script(text, scope, positional).run()


def words_of(text: Text, scope: Scope) -> list[Value]:
    """The words of all commands, one after the other; what they assign, ``scope`` does not see."""
    return [word for command in commands(text, scope.child()) for word in command.words]


class _Script:
    def __init__(self, text: Text, scope: Scope, positional: tuple[Value, ...]) -> None:
        self.lexer = Lexer(text, scope, positional)
        self.scope = scope
        self.depth = 0
        self.found: list[Command] = []
        # What `VAR=1 command` hid, to be put back after the command.
        self.hidden: dict[str, Variable | None] = {}

    def run(self) -> list[Command]:
        words: list[Value] = []
        own: Scope = self.scope
        guarded = False
        skip_next = False
        while len(self.found) < MAX_COMMANDS:
            token = self.lexer.next()
            if token is None or isinstance(token, str):
                if token == ">":
                    skip_next = True
                    continue
                if words:
                    branch = self.depth > 0 or guarded
                    self.found.append(Command(tuple(words), branch, own.child()))
                    self._restore()
                self.hidden = {}
                words, own = [], self.scope
                guarded = token in ("&&", "||")
                if token is None:
                    break
                continue
            if skip_next:
                skip_next = False
                continue
            if not words:
                if self._keyword(token):
                    continue
                if (name := self._assigned(token)) is not None:
                    self._assign(name, token, guarded)
                    continue
            values = token.values(self.scope)
            words.extend(values)
            if words and words[0].chars in _DECLARING:
                # `export A=1`: the rest are assignments.
                words = []
        return self.found

    def _keyword(self, word: Word) -> bool:
        chars = "".join(word.chars) if not word.quoted else ""
        if chars in _OPENING:
            self.depth += 1
            return chars in ("if", "while", "until")
        if chars in _CLOSING:
            self.depth = max(0, self.depth - 1)
            return True
        return chars in _PASSED

    def _assigned(self, word: Word) -> re.Match[str] | None:
        return _ASSIGNMENT.match("".join(word.chars[:200]))

    def _assign(self, match: re.Match[str], word: Word, guarded: bool) -> None:
        name = match[1]
        chars = self.lexer.text.chars
        if (
            match.end() == len(word.chars)
            and not word.quoted
            and chars.startswith("(", self.lexer.at)
        ):
            self._assign_list(name, adds=bool(match[2]))
            return
        text = "".join(word.chars[match.end() :])
        before = self.scope.variables.get(name)
        line = self.scope.source.line_of(word.offsets[0]) if word.offsets else 0
        if match[2] and before is not None:
            text = before.text + text
        branch = self.depth > 0 or guarded
        choices = (before.choices or (before.text,)) if before is not None else ()
        self.hidden.setdefault(name, before)
        differs = branch and (before is None or before.text != text)
        self.scope.variables[name] = Variable(
            text,
            f"`{name}` = `{text[:80]}` (line {line})",
            may_differ=differs,
            choices=tuple(dict.fromkeys((*choices, text)))[:8],
        )

    def _restore(self) -> None:
        for name, before in self.hidden.items():
            if before is None:
                self.scope.variables.pop(name, None)
            else:
                self.scope.variables[name] = before

    def _assign_list(self, name: str, *, adds: bool) -> None:
        """`ARGS=(a b c)` and `ARGS+=(d)`."""
        self.lexer.at += 1
        values: list[Value] = list(self.scope.arrays.get(name, ())) if adds else []
        while (token := self.lexer.next()) is not None and token != ")":
            if isinstance(token, Word):
                found = token.values(self.scope)
                if self.depth > 0:
                    found = [replace(value, may_differ=True) for value in found]
                values.extend(found)
            if len(values) > MAX_COMMANDS:
                break
        self.scope.arrays[name] = tuple(values)
