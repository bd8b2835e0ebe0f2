"""A formula in symbols, and the same with its numbers filled in.

Formulas are written in arithmetic that a reader can type into a calculator: + - × / ( ), and
ceil, floor, min, max. Numbers are filled in to seven digits, whole ones exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from capplan.results.explanation import Figure, Symbol

FUNCTIONS = ("ceil", "floor", "min", "max")
DIGITS = 7
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def number(value: float) -> str:
    """A number to seven digits, whole ones exactly.

    >>> number(16094076928.0), number(0.025), number(73.51234567), number(2.5e-06)
    ('16,094,076,928', '0.025', '73.51235', '2.5e-06')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{DIGITS}g}"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def filled_in(formula: str, values: dict[str, float]) -> str:
    """The formula with each symbol's number in its place.

    >>> filled_in("n = ceil(a / b)", {"n": 3, "a": 5.0, "b": 2.5e3})
    '3 = ceil(5 / 2,500)'
    """
    return _NAME.sub(
        lambda found: found[0] if found[0] in FUNCTIONS else number(values[found[0]]), formula
    )


def figure(
    name: str,
    value: float,
    unit: str,
    formula: str,
    symbols: Sequence[Symbol],
    *,
    why: str,
    picture: str,
    check: str,
    source: str,
) -> Figure:
    """A figure; the name left of the formula's `=` stands for its value."""
    own = formula.split("=", 1)[0].strip()
    values = {symbol.name: symbol.value for symbol in symbols} | {own: value}
    return Figure(
        name=name,
        value=value,
        unit=unit,
        why=why,
        picture=picture,
        formula=formula,
        filled=filled_in(formula, values),
        check=check,
        source=source,
        symbols=tuple(symbols),
    )
