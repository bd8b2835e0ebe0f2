"""Errors that a user sees: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file; ``line`` and ``column`` count from 1, None where unknown."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file, self.line, self.column]
        return ":".join(str(part) for part in parts if part is not None)


class CapplanError(Exception):
    """The question could not be answered; the program exits with 2.

    ``message`` is one sentence in lower case, ``hint`` says what to do.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location


class QuantityError(CapplanError, ValueError):
    """A text that should be a quantity and is not; also a ValueError, so pydantic collects it."""


class UnsupportedError(CapplanError):
    """This accelerator cannot do what was asked; in a comparison the others may."""


# Of a file that cannot be written, whatever the reason.
UNWRITABLE = "name a file in a folder that may be written to"


def one_line(text: str, most: int) -> str:
    """``text`` cut to ``most`` characters, with `?` for what a terminal would obey.

    >>> one_line("a\\x1b[31mb", 40), one_line("abcdefgh", 6)
    ('a?[31mb', 'abc...')
    """
    short = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else "?" for c in short)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was most likely meant to be, or None.

    >>> nearest_name("bandwith", ["capacity", "bandwidth"])
    'bandwidth'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest known name, or None where nothing is near.

    >>> did_you_mean("bandwith", ["capacity", "bandwidth"])
    'did you mean `bandwidth`?'
    """
    near = nearest_name(name, known)
    return f"did you mean `{near}`?" if near else None
