"""Whole-number arithmetic as a shell does it: `$(( LWS_GROUP_SIZE * DP_SIZE_LOCAL ))`."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(\d+|\$?\{?([A-Za-z_]\w*)(?::-(\d+))?\}?|[-+*/%()])")
_MAX_TOKENS = 64
_MAX_VALUE = 10**12


def evaluate(expression: str, lookup: Callable[[str], str | None]) -> int | None:
    """The value, or None where a name is unknown or it is no simple expression.

    >>> evaluate("A * (2 + B)", {"A": "3", "B": "4"}.get)
    18
    >>> evaluate("A * 2", {}.get), evaluate("1 +", {}.get)
    (None, None)
    """
    tokens = _tokens(expression, lookup)
    if tokens is None:
        return None
    try:
        value, rest = _sum(tokens)
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    return value if not rest and abs(value) <= _MAX_VALUE else None


def _tokens(expression: str, lookup: Callable[[str], str | None]) -> list[str] | None:
    tokens: list[str] = []
    at = 0
    while expression[at:].strip():
        match = _TOKEN.match(expression, at)
        if match is None or len(tokens) > _MAX_TOKENS:
            return None
        at = match.end()
        if match[2]:
            text = lookup(match[2]) or match[3]
            if text is None or not re.fullmatch(r"-?\d{1,9}", text.strip()):
                return None
            tokens.append(text.strip())
        else:
            tokens.append(match[1])
    return tokens


def _sum(tokens: list[str]) -> tuple[int, list[str]]:
    value, tokens = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign = tokens[0]
        term, tokens = _product(tokens[1:])
        value = value + term if sign == "+" else value - term
    return value, tokens


def _product(tokens: list[str]) -> tuple[int, list[str]]:
    value, tokens = _factor(tokens)
    while tokens and tokens[0] in "*/%":
        sign = tokens[0]
        factor, tokens = _factor(tokens[1:])
        value = (
            value * factor if sign == "*" else value // factor if sign == "/" else value % factor
        )
        if abs(value) > _MAX_VALUE:
            raise ValueError(value)
    return value, tokens


def _factor(tokens: list[str]) -> tuple[int, list[str]]:
    if tokens[0] == "(":
        value, tokens = _sum(tokens[1:])
        if tokens[0] != ")":
            raise ValueError(tokens[0])
        return value, tokens[1:]
    if tokens[0] == "-":
        value, tokens = _factor(tokens[1:])
        return -value, tokens
    return int(tokens[0]), tokens[1:]
