"""An answer explained: for every figure why it matters, the picture, the formula, the check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """One quantity of a formula, in base units."""

    name: str
    meaning: str
    value: float
    unit: str  # s | bytes | tokens | FLOP | FLOP/s | bytes/s | $ | W | "" for counts and shares


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an answer, in five steps.

    ``formula`` has the symbols, ``filled`` the same with their values: its right side is
    arithmetic that gives ``value`` again, to the digits that are printed.
    """

    name: str
    value: float
    unit: str
    why: str
    picture: str
    formula: str
    filled: str
    check: str
    source: str
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All figures of one run of a command, in the order in which they follow from each other."""

    command: str  # gpus | roofline | kv | simulate
    headline: str
    figures: tuple[Figure, ...]
    left_out: tuple[str, ...]  # figures that no formula of a line gives, and where they come from
