"""A text file, and pieces of its text that still know where each character stands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from capplan.errors import Location


@dataclass(frozen=True)
class Source:
    """A file as read: templates stand in its text as they are written."""

    file: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def line_of(self, offset: int) -> int:
        """The line of a character, from 1."""
        return bisect_right(self._line_starts, offset)

    def location(self, offset: int) -> Location:
        line = self.line_of(offset)
        return Location(self.file, line, offset - self._line_starts[line - 1] + 1)

    def line_text(self, line: int) -> str:
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    @property
    def num_lines(self) -> int:
        return len(self._line_starts)


@dataclass(frozen=True, slots=True)
class Text:
    """Characters and, for each, its offset in the file."""

    source: Source
    chars: str
    offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.chars)

    def part(self, start: int, end: int) -> Text:
        return Text(self.source, self.chars[start:end], self.offsets[start:end])

    def at(self, index: int) -> int:
        """The offset of a character; of the last one where the index is past the end."""
        if not self.offsets:
            return 0
        return self.offsets[min(index, len(self.offsets) - 1)]


def whole(source: Source) -> Text:
    """All of a file."""
    return Text(source, source.text, range(len(source.text)))
