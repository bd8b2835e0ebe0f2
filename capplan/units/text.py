"""From a text to an exact number of base units, and back; knows no unit by name."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction

from capplan.errors import QuantityError, nearest_name
from capplan.units.families import BYTES, Family

_MAX_LENGTH = 64
_SMALLEST, _LARGEST = Fraction(1, 10**30), Fraction(10**30)
_EXACT = Context(prec=400)
_NUMBER = re.compile(
    r"\+?(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<exponent>[+-]?\d+))?",
    re.ASCII,
)


def refusal(text: str, problem: str, hint: str) -> QuantityError:
    # A text from a file may hold control sequences, which the user's terminal would obey.
    message = "".join(c if c.isprintable() else "?" for c in f"`{text}` {problem}")
    return QuantityError(message, hint=hint)


def _not_a_number(text: str, family: Family) -> QuantityError:
    hint = f"write {family.examples}"
    if not text:
        return QuantityError(f"an empty text is not {family.noun}", hint=hint)
    if len(text) > _MAX_LENGTH:
        return refusal(f"{text[:16]}...", f"is too long for {family.noun}", hint)
    if re.match(r"[+-]?(?:(?:nan|inf|infinity)(?![a-z])|∞)", text, re.IGNORECASE):
        return refusal(text, "is not a finite number", hint)
    if re.match(r"\$?[-−]\s*\$?\.?\d", text):
        return refusal(text, "is negative", f"write {family.noun} of zero or more")
    return refusal(text, f"is not {family.noun}", hint)


def _unknown_unit(text: str, number: str, unit: str, family: Family) -> QuantityError:
    for pattern, problem, hint in family.refused:
        if match := re.fullmatch(pattern, unit):
            p = match[1] if match.lastindex else ""
            problem, hint = (t.format(n=number, p=p, P=p.upper()) for t in (problem, hint))
            return refusal(text, problem, hint)
    if unit[0] in ".,_" or unit[0].isdigit():
        hint = "write thousands as 1,024 or 1024, and decimals as 0.5"
        return refusal(text, f"is not {family.noun}", hint)
    by_lower = {name.lower(): name for name in (*family.factors, *family.scale)}
    offered = [name for name in (*family.scale, *family.suggested) if name]
    near = by_lower.get(unit.lower()) or nearest_name(unit, offered)
    hint = f"did you mean `{number}{near}`?" if near else f"write {family.examples}"
    return refusal(text, f"has an unknown unit, `{unit}`", hint)


def _number(match: re.Match[str]) -> Fraction:
    # A giant exponent would take for ever to expand; clamped, it still is far outside the range.
    exponent = max(-200, min(200, int(match["exponent"] or 0)))
    digits = match["digits"].replace(",", "").replace("_", "")
    return Fraction(Decimal(f"{digits}e{exponent}"))


def parse(text: str, family: Family, positive: bool) -> Fraction:
    """The exact number of base units in ``text``, zero or more; else QuantityError."""
    text = text.strip()
    quantity = text.removeprefix(family.prefix).lstrip()
    match = _NUMBER.match(quantity) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _not_a_number(text, family)
    unit = "".join(quantity[match.end() :].split())
    if unit not in family.factors:
        raise _unknown_unit(text, match[0], unit, family)
    value = _number(match) * family.factors[unit]
    if value > _LARGEST or 0 < value < _SMALLEST:
        size = "large" if value > 1 else "small"
        raise refusal(text, f"is too {size} for {family.noun}", f"write {family.examples}")
    if positive and not (round(value) if family is BYTES else value):
        raise refusal(text, "is zero", f"write {family.noun} above zero")
    return value


def exact(value: float) -> Fraction:
    """What the digits of ``value`` say: 0.1 is a tenth, not the binary fraction next to it."""
    if isinstance(value, int):
        return Fraction(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be shown as a quantity")
    return Fraction(Decimal(repr(float(value))))


def decimal(value: Fraction, context: Context) -> Decimal:
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return context.normalize(quotient)


def with_digits(number: Decimal, digits: int) -> str:
    return f"{number:,.{max(0, digits - 1 - number.adjusted())}f}"


def _exact_text(value: Fraction, family: Family, scale: tuple[str, ...]) -> tuple[str, str]:
    """Number and unit, in the largest unit that needs no more digits than the base unit."""
    base = next((unit for unit in scale if family.factors[unit] == 1), scale[-1])
    in_base = decimal(value / family.factors[base], _EXACT)
    for unit in scale:
        number = decimal(value / family.factors[unit], _EXACT)
        # A quotient that never ends has 400 digits here, so what is short is also exact.
        if number >= 1 and len(number.as_tuple().digits) <= len(in_base.as_tuple().digits):
            return f"{number:f}", unit
    return f"{in_base:f}", base


def _rounded_text(
    value: Fraction, family: Family, scale: tuple[str, ...], digits: int
) -> tuple[str, str]:
    """Number and unit, in the largest unit in which the number is at least 1 once rounded.

    Judged after rounding, so that 999.9996 ms becomes 1.00 s and never 1,000 ms.
    """
    for unit in scale:
        number = decimal(value / family.factors[unit], Context(prec=digits))
        if number >= 1:
            break
    indivisible = family.whole and family.factors[unit] == 1 and value.denominator == 1
    return with_digits(number, 0 if indivisible else digits), unit


def format_text(
    value: float, family: Family, digits: int | None, scale: tuple[str, ...] | None = None
) -> str:
    size, scale = abs(exact(value)), scale or family.scale
    if digits is None or not size:
        number, unit = _exact_text(size, family, scale)
    else:
        number, unit = _rounded_text(size, family, scale, digits)
    return f"{'-' if value < 0 else ''}{number} {unit}".rstrip()
