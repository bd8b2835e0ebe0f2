"""The words of a shell script, each character with its place; variables filled in on the way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from capplan.check.arithmetic import evaluate
from capplan.check.source import Text
from capplan.check.values import HOLE, Scope, Value, Variable, closing, value_of

_OPERATORS = ("&&", "||", ";;", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECT = re.compile(r"(?:\d|&)?(?:>>|>\||>&|<&|<>|>|<(?!<))")
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2")
_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACED = re.compile(r"(\w+|[@*#?$!-])(\[[@*]\])?(:?[-=?+])?")
_KUBERNETES = re.compile(r"\$\(([A-Z][A-Z0-9_]*)\)")
_PLAIN = re.compile(r"[\w./:,=@%+^~-]+")
MAX_EXPANSION = 20_000


@dataclass(slots=True)
class Word:
    """A word under construction: characters, places, and which of them may split it."""

    chars: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    splits: list[bool] = field(default_factory=list)
    whole: tuple[Value, ...] | None = None  # `"$@"`, `"${ARGS[@]}"`: words of their own
    quoted: bool = False
    touched: bool = False

    def put(self, chars: str, at: int, *, split: bool = False) -> None:
        chars = chars[:MAX_EXPANSION]
        self.chars.extend(chars)
        self.offsets.extend([at] * len(chars))
        self.splits.extend([split] * len(chars))
        self.touched = True

    def copy(self, text: Text, start: int, end: int) -> None:
        self.chars.extend(text.chars[start:end])
        self.offsets.extend(text.offsets[start:end])
        self.splits.extend([False] * (end - start))
        self.touched = True

    def values(self, scope: Scope) -> list[Value]:
        """The words that it makes: several where an unquoted variable holds spaces."""
        if self.whole is not None:
            return list(self.whole)
        found: list[Value] = []
        start = 0
        for i in range(len(self.chars) + 1):
            if i == len(self.chars) or (self.splits[i] and self.chars[i] in " \t\n"):
                if i > start or (self.quoted and not self.chars):
                    text = Text(scope.source, "".join(self.chars[start:i]), self.offsets[start:i])
                    found.append(value_of(text, scope))
                start = i + 1
        return found


class Lexer:
    """Words and operators of a script, one after the other."""

    def __init__(self, text: Text, scope: Scope, positional: tuple[Value, ...]) -> None:
        self.text = text
        self.scope = scope
        self.positional = positional
        self.at = 0
        self.heredocs: list[str] = []

    def next(self) -> str | Word | None:
        """An operator, a word, or None at the end; comments and continued lines are passed."""
        chars = self.text.chars
        self._skip_blanks()
        if self.at >= len(chars):
            return None
        if heredoc := _HEREDOC.match(chars, self.at):
            self.heredocs.append(heredoc[3])
            self.at = heredoc.end()
            return self.next()
        if redirect := _REDIRECT.match(chars, self.at):
            self.at = redirect.end()
            return ">"
        for operator in _OPERATORS:
            if chars.startswith(operator, self.at):
                self.at += len(operator)
                if operator == "\n":
                    self._skip_heredocs()
                return operator
        return self._word()

    def _skip_blanks(self) -> None:
        chars = self.text.chars
        while self.at < len(chars):
            if chars[self.at] in " \t\r":
                self.at += 1
            elif chars.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = chars.find("\n", self.at) + 1
            elif chars[self.at] == "#":
                end = chars.find("\n", self.at)
                self.at = end if end >= 0 else len(chars)
            else:
                return

    def _skip_heredocs(self) -> None:
        """What follows `<<EOF` up to its end is no command."""
        chars = self.text.chars
        for name in self.heredocs:
            end = re.compile(rf"^[ \t]*{name}[ \t\r]*$", re.M).search(chars, self.at)
            if end:
                self.at = min(end.end() + 1, len(chars))
        self.heredocs = []

    def _word(self) -> Word:
        chars, word = self.text.chars, Word()
        while self.at < len(chars):
            plain = _PLAIN.match(chars, self.at)
            if plain:
                word.copy(self.text, self.at, plain.end())
                self.at = plain.end()
                continue
            char = chars[self.at]
            if char in " \t\r\n;&|()<>" and not (char in "<>" and not word.touched):
                break
            if char == "\\":
                if chars.startswith(("\\\n", "\\\r\n"), self.at):
                    self.at = chars.find("\n", self.at) + 1
                    continue
                word.copy(self.text, self.at + 1, min(self.at + 2, len(chars)))
                self.at += 2
            elif char == "'":
                end = chars.find("'", self.at + 1)
                end = end if end >= 0 else len(chars)
                word.copy(self.text, self.at + 1, end)
                word.quoted = True
                self.at = end + 1
            elif char == '"':
                self._double_quoted(word)
            elif char in "$`":
                self._expansion(word, quoted=False)
            else:
                word.copy(self.text, self.at, self.at + 1)
                self.at += 1
        return word

    def _double_quoted(self, word: Word) -> None:
        chars = self.text.chars
        word.quoted = True
        self.at += 1
        while self.at < len(chars) and chars[self.at] != '"':
            if (
                chars[self.at] == "\\"
                and self.at + 1 < len(chars)
                and chars[self.at + 1] in '"\\$`\n'
            ):
                if chars[self.at + 1] != "\n":
                    word.copy(self.text, self.at + 1, self.at + 2)
                self.at += 2
            elif chars[self.at] in "$`":
                self._expansion(word, quoted=True)
            else:
                word.copy(self.text, self.at, self.at + 1)
                self.at += 1
        self.at += 1

    def _expansion(self, word: Word, *, quoted: bool) -> None:
        """`$VAR`, `${VAR...}`, `$((...))`, `$(...)` or backticks at the current place."""
        chars, start = self.text.chars, self.at
        place = self.text.at(start)
        if chars[start] == "`":
            end = chars.find("`", start + 1)
            self.at = (end if end >= 0 else len(chars)) + 1
            self._hole(word, place, "the output of a command")
        elif chars.startswith("$((", start):
            end = closing(chars, start + 1, len(chars))
            self.at = end + 1
            self._arithmetic(word, chars[start + 3 : end - 1], place)
        elif chars.startswith("$(", start):
            end = closing(chars, start + 1, len(chars))
            self.at = end + 1
            name = _KUBERNETES.match(chars, start)
            if name and name.end() == end + 1:
                word.put(self.scope.fill(name[1], name[0], place), place)
            else:
                self._hole(
                    word,
                    place,
                    f"`{chars[start : min(end + 1, start + 60)]}` is the output of a command",
                )
        elif chars.startswith("${", start):
            end = closing(chars, start + 1, len(chars))
            self.at = end + 1
            self._braced(word, self.text.part(start + 2, end), place, quoted)
        elif name := _NAME.match(chars, start + 1):
            self.at = name.end()
            word.put(
                self.scope.fill(name[0], chars[start : self.at], place), place, split=not quoted
            )
        elif start + 1 < len(chars) and chars[start + 1] in "@*#?$!-0123456789":
            self.at = start + 2
            self._special(word, chars[start + 1], place)
        else:
            word.copy(self.text, start, start + 1)
            self.at = start + 1

    def _hole(self, word: Word, place: int, reason: str) -> None:
        self.scope.marks[place] = reason
        word.put(HOLE, place)

    def _arithmetic(self, word: Word, expression: str, place: int) -> None:
        def lookup(name: str) -> str | None:
            found = self.scope.find(name)
            return None if found is None or found.may_differ else found.text

        value = evaluate(expression, lookup)
        if value is None:
            self._hole(word, place, f"`$(({expression.strip()[:60]}))` needs what is set elsewhere")
        else:
            self.scope.marks[place] = f"`{expression.strip()[:60]}` = {value}"
            word.put(str(value), place)

    def _special(self, word: Word, name: str, place: int) -> None:
        if name in "@*":
            if word.touched or not self.positional:
                self._hole(word, place, f"`${name}` is given from outside")
            else:
                word.whole = self.positional[1:]
            return
        index = int(name) if name.isdigit() else len(self.positional)
        if index < len(self.positional):
            if not word.touched:
                word.whole = (self.positional[index],)
            else:
                word.put(self.positional[index].chars, place)
        else:
            self._hole(word, place, f"`${name}` is given from outside")

    def _braced(self, word: Word, inner: Text, place: int, quoted: bool) -> None:
        match = _BRACED.match(inner.chars)
        written = "${" + inner.chars[:60] + "}"
        if match is None:
            self._hole(word, place, f"`{written}` is filled in by the shell")
            return
        name, subscript, operator = match[1], match[2], match[3]
        if subscript or name in "@*":
            self._list(word, name, written, place)
            return
        found = self.scope.find(name)
        if name.isdigit() and int(name) < len(self.positional):
            found = Variable(self.positional[int(name)].chars, "given to the script")
        rest = match.end()
        if operator in ("-", ":-", "=", ":="):
            if found is None or (not found.text and operator[0] == ":"):
                self._default(word, inner.part(rest, len(inner)), written, place, quoted)
                if operator.endswith("="):
                    default = "".join(word.chars)
                    self.scope.variables[name] = Variable(default, f"the default of `{written}`")
                return
        elif (operator and "+" in operator) or (operator is None and rest < len(inner)):
            self._hole(word, place, f"`{written}` is filled in by the shell")
            return
        word.put(self.scope.fill(name, written, place), place, split=not quoted)

    def _default(self, word: Word, text: Text, written: str, place: int, quoted: bool) -> None:
        """The text after `:-`, itself with variables."""
        inner = Lexer(text, self.scope, self.positional)
        parts: list[str] = []
        while (token := inner.next()) is not None:
            chars = token if isinstance(token, str) else "".join(token.chars)
            parts.append(chars)
        self.scope.marks[place] = f"the default of `{written}`"
        word.put(" ".join(parts), place, split=not quoted)

    def _list(self, word: Word, name: str, written: str, place: int) -> None:
        if name in "@*":
            self._special(word, name, place)
        elif name in self.scope.arrays and not word.touched:
            word.whole = self.scope.arrays[name]
        else:
            self._hole(word, place, f"`{written}` is a list set elsewhere")
