"""Quantities as people write them, and as programs count them.

Inside, everything is a plain float or int in a base unit: seconds, bytes, FLOP, tokens, dollars,
watts, hertz. Texts become numbers here (``parse_*``), numbers become texts here (``format_*``), and
no other module knows what a giga is. ``GB``, ``GIB``, ``MIB`` and ``TERA`` are for whoever needs
them.

Every ``parse_*`` returns the number nearest to what was written. It raises QuantityError for what
is no such quantity, negative, not finite or outside 1e-30 to 1e30, and for zero if ``positive``.

Every ``format_*`` has two forms. Without ``digits`` the text is exact: it parses back to the same
number. With ``digits`` it is for people: that many significant digits, thousands separated by
commas, no exponent. Infinity and NaN have no text: ValueError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from capplan.errors import QuantityError, nearest_name

_SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_MULTIPLIERS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_PERIODS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}

GB = _SI["G"]
GIB = _BINARY["Gi"]
MIB = _BINARY["Mi"]
TERA = _SI["T"]

_MAX_LENGTH = 64
_SMALLEST, _LARGEST = Fraction(1, 10**30), Fraction(10**30)
_EXACT = Context(prec=400)
_NUMBER = re.compile(
    r"\+?(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<exponent>[+-]?\d+))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class _Family:
    """The units of one kind of quantity."""

    noun: str
    examples: str
    factors: Mapping[str, Fraction]  # base units in one; the unit "" where a bare number will do
    scale: tuple[str, ...]  # the units that are printed, largest first
    suggested: tuple[str, ...] = ()  # what else a hint may offer
    # Units refused for a reason: pattern, problem, hint. In the last two {n} is the number and {p}
    # the pattern's group, {P} in upper case.
    refused: tuple[tuple[str, str, str], ...] = ()
    prefix: str = ""  # what may stand before the number
    whole: bool = False  # counts things that cannot be split


def _units(prefixes: Mapping[str, int], *names: str, per: int = 1) -> dict[str, Fraction]:
    return {f"{p}{name}": Fraction(f, per) for p, f in prefixes.items() for name in names}


_BYTE_PREFIXES = {p: f for p, f in _SI.items() if p != "E"} | {"K": 10**3} | _BINARY
_GB_SCALE = ("PB", "TB", "GB", "MB", "kB", "B")
_GIB_SCALE = ("PiB", "TiB", "GiB", "MiB", "KiB", "B")

_DURATION = _Family(
    "a duration",
    "400ms, 0.4s or 2h",
    _units(_PERIODS, "")
    | _units({"m": 1}, "s", per=10**3)
    | _units({"u": 1, "µ": 1, "μ": 1}, "s", per=10**6)  # the micro sign and the Greek mu
    | _units({"n": 1}, "s", per=10**9),
    scale=("d", "h", "min", "s", "ms", "us", "ns"),
    refused=(
        ("", "has no unit", "write {n}ms or {n}s"),
        ("[mM]", "may mean minutes or milliseconds", "write {n}min or {n}ms"),
    ),
)
_BYTES = _Family(
    "a size in bytes",
    "80GB or 80GiB",
    _units(_BYTE_PREFIXES, "B") | _units({"": 1}, "byte", "bytes"),
    scale=_GB_SCALE,
    suggested=_GIB_SCALE,
    refused=(
        ("", "has no unit", "write {n}GB or {n}GiB"),
        ("([kKMGTP])", "may mean {p}B or {P}iB", "write {n}{p}B or {n}{P}iB"),
        ("([kKMGTP]|[KMGTP]i|)b", "may mean bits or bytes", "write {n}{p}B for bytes"),
        ("([kKMGTP]i?|)bits?", "counts bits", "write bytes, such as 80GB or 80GiB"),
    ),
    whole=True,
)
_BYTES_PER_S = _Family(
    "a bandwidth",
    "3.35TB/s, 450GB/s or 400Gbit/s",
    _units(_BYTE_PREFIXES, "B/s") | _units(_BYTE_PREFIXES, "bit/s", per=8),
    scale=tuple(f"{unit}/s" for unit in _GB_SCALE),
    suggested=(*(f"{unit}/s" for unit in _GIB_SCALE), "Mbit/s", "Gbit/s", "Tbit/s"),
    refused=(
        ("", "has no unit", "write {n}GB/s or {n}Gbit/s"),
        (
            "([kKMGTP]|[KMGTP]i|)b(?:/s|ps|)",
            "may mean bits or bytes",
            "write {n}{p}bit/s for bits or {n}{p}B/s for bytes",
        ),
    ),
)
_FLOP_PER_S = _Family(
    "a compute rate",
    "989.4TFLOP/s or 1978.9TOP/s",
    _units(_SI, "OPs", "OPS", "OP/s", "FLOPs", "FLOPS", "FLOP/s"),
    scale=tuple(f"{p}FLOP/s" for p in reversed(_SI)),
    refused=(("", "has no unit", "write {n}TFLOP/s or {n}TOP/s"),),
)
_RATE = _Family(
    "a rate",
    "100, 100/s, 300/min or 5M/day",
    _units(_MULTIPLIERS, "", "rps", "qps")
    | {
        f"{unit}/{period}": factor / seconds
        for period, seconds in _PERIODS.items()
        for unit, factor in _units(_MULTIPLIERS, "", "req", "requests").items()
    },
    scale=("req/s",),
)
_TOKENS = _Family(
    "a number of tokens",
    "1024, 8k (8,000) or 8Ki (8,192)",
    _units(_MULTIPLIERS | _BINARY, "", "token", "tokens"),
    scale=("",),
    whole=True,
)
_SHARE = _Family("a share", "0.9 or 90%", {"": Fraction(1), "%": Fraction(1, 100)}, scale=("%",))
_MONEY = _Family(
    "an amount of money",
    "2.5, $2.50 or 2.50 USD",
    _units({"": 1}, "", "USD"),
    scale=("",),
    prefix="$",
)
_POWER = _Family(
    "a power",
    "700W or 1.2kW",
    _units({p: _SI[p] for p in ("", "k", "M")}, "W"),
    scale=("MW", "kW", "W"),
    refused=(("", "has no unit", "write {n}W or {n}kW"),),
)
_FREQUENCY = _Family(
    "a frequency",
    "1830MHz or 1.98GHz",
    _units({p: _SI[p] for p in ("", "k", "M", "G")}, "Hz"),
    scale=("GHz", "MHz", "kHz", "Hz"),
    refused=(("", "has no unit", "write {n}MHz or {n}GHz"),),
)


def _refusal(text: str, problem: str, hint: str) -> QuantityError:
    # A text from a file may hold control sequences, which the user's terminal would obey.
    message = "".join(c if c.isprintable() else "?" for c in f"`{text}` {problem}")
    return QuantityError(message, hint=hint)


def _not_a_number(text: str, family: _Family) -> QuantityError:
    hint = f"write {family.examples}"
    if not text:
        return QuantityError(f"an empty text is not {family.noun}", hint=hint)
    if len(text) > _MAX_LENGTH:
        return _refusal(f"{text[:16]}...", f"is too long for {family.noun}", hint)
    if re.match(r"[+-]?(?:(?:nan|inf|infinity)(?![a-z])|∞)", text, re.IGNORECASE):
        return _refusal(text, "is not a finite number", hint)
    if re.match(r"\$?[-−]\s*\$?\.?\d", text):
        return _refusal(text, "is negative", f"write {family.noun} of zero or more")
    return _refusal(text, f"is not {family.noun}", hint)


def _unknown_unit(text: str, number: str, unit: str, family: _Family) -> QuantityError:
    for pattern, problem, hint in family.refused:
        if match := re.fullmatch(pattern, unit):
            p = match[1] if match.lastindex else ""
            problem, hint = (t.format(n=number, p=p, P=p.upper()) for t in (problem, hint))
            return _refusal(text, problem, hint)
    if unit[0] in ".,_" or unit[0].isdigit():
        hint = "write thousands as 1,024 or 1024, and decimals as 0.5"
        return _refusal(text, f"is not {family.noun}", hint)
    by_lower = {name.lower(): name for name in (*family.factors, *family.scale)}
    offered = [name for name in (*family.scale, *family.suggested) if name]
    near = by_lower.get(unit.lower()) or nearest_name(unit, offered)
    hint = f"did you mean `{number}{near}`?" if near else f"write {family.examples}"
    return _refusal(text, f"has an unknown unit, `{unit}`", hint)


def _number(match: re.Match[str]) -> Fraction:
    # A giant exponent would take for ever to expand; clamped, it still is far outside the range.
    exponent = max(-200, min(200, int(match["exponent"] or 0)))
    digits = match["digits"].replace(",", "").replace("_", "")
    return Fraction(Decimal(f"{digits}e{exponent}"))


def _parse(text: str, family: _Family, positive: bool) -> Fraction:
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
        raise _refusal(text, f"is too {size} for {family.noun}", f"write {family.examples}")
    if positive and not (round(value) if family is _BYTES else value):
        raise _refusal(text, "is zero", f"write {family.noun} above zero")
    return value


def _exact(value: float) -> Fraction:
    """What the digits of ``value`` say: 0.1 is a tenth, not the binary fraction next to it."""
    if isinstance(value, int):
        return Fraction(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be shown as a quantity")
    return Fraction(Decimal(repr(float(value))))


def _decimal(value: Fraction, context: Context) -> Decimal:
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return context.normalize(quotient)


def _with_digits(number: Decimal, digits: int) -> str:
    return f"{number:,.{max(0, digits - 1 - number.adjusted())}f}"


def _exact_text(value: Fraction, family: _Family, scale: tuple[str, ...]) -> tuple[str, str]:
    """Number and unit, in the largest unit that needs no more digits than the base unit."""
    base = next((unit for unit in scale if family.factors[unit] == 1), scale[-1])
    in_base = _decimal(value / family.factors[base], _EXACT)
    for unit in scale:
        number = _decimal(value / family.factors[unit], _EXACT)
        # A quotient that never ends has 400 digits here, so what is short is also exact.
        if number >= 1 and len(number.as_tuple().digits) <= len(in_base.as_tuple().digits):
            return f"{number:f}", unit
    return f"{in_base:f}", base


def _rounded_text(
    value: Fraction, family: _Family, scale: tuple[str, ...], digits: int
) -> tuple[str, str]:
    """Number and unit, in the largest unit in which the number is at least 1 once rounded.

    Judged after rounding, so that 999.9996 ms becomes 1.00 s and never 1,000 ms.
    """
    for unit in scale:
        number = _decimal(value / family.factors[unit], Context(prec=digits))
        if number >= 1:
            break
    indivisible = family.whole and family.factors[unit] == 1 and value.denominator == 1
    return _with_digits(number, 0 if indivisible else digits), unit


def _format(
    value: float, family: _Family, digits: int | None, scale: tuple[str, ...] | None = None
) -> str:
    size, scale = abs(_exact(value)), scale or family.scale
    if digits is None or not size:
        number, unit = _exact_text(size, family, scale)
    else:
        number, unit = _rounded_text(size, family, scale, digits)
    return f"{'-' if value < 0 else ''}{number} {unit}".rstrip()


def parse_duration(text: str, *, positive: bool = False) -> float:
    """Seconds; a bare number is refused.

    >>> parse_duration("400ms")
    0.4
    """
    return float(_parse(text, _DURATION, positive))


def format_duration(seconds: float, digits: int | None = None) -> str:
    """Seconds as text.

    >>> format_duration(0.4), format_duration(0.00687123, digits=3)
    ('400 ms', '6.87 ms')
    """
    return _format(seconds, _DURATION, digits)


def parse_bytes(text: str, *, positive: bool = False) -> int:
    """Bytes, to the nearest one; ``Gb``, ``G`` and a bare number are refused.

    >>> parse_bytes("80GB"), parse_bytes("80GiB")
    (80000000000, 85899345920)
    """
    return round(_parse(text, _BYTES, positive))


def format_bytes(size: float, *, binary: bool, digits: int | None = None) -> str:
    """Bytes as text, in GiB and its kin if ``binary``, else in GB; exact to the whole byte.

    >>> format_bytes(80 * GB, binary=False), format_bytes(57e9, binary=True, digits=3)
    ('80 GB', '53.1 GiB')
    """
    if digits is None:
        size = round(_exact(size))
    return _format(size, _BYTES, digits, _GIB_SCALE if binary else _GB_SCALE)


def parse_bytes_per_s(text: str, *, positive: bool = False) -> float:
    """Bytes per second, of memory (``TB/s``) or a link (``Gbit/s``); ``Gb/s`` is refused.

    >>> parse_bytes_per_s("3.35 TB/s"), parse_bytes_per_s("400 Gbit/s")
    (3350000000000.0, 50000000000.0)
    """
    return float(_parse(text, _BYTES_PER_S, positive))


def format_bytes_per_s(bytes_per_s: float, digits: int | None = None) -> str:
    """Bytes per second as text.

    >>> format_bytes_per_s(2.039e12, digits=4)
    '2.039 TB/s'
    """
    return _format(bytes_per_s, _BYTES_PER_S, digits)


def parse_flop_per_s(text: str, *, positive: bool = False) -> float:
    """FLOP, or integer operations, per second; ``TFLOPS`` and ``TOPS`` say the same.

    >>> parse_flop_per_s("989.4 TFLOP/s")
    989400000000000.0
    """
    return float(_parse(text, _FLOP_PER_S, positive))


def format_flop_per_s(flop_per_s: float, digits: int | None = None) -> str:
    """FLOP per second as text.

    >>> format_flop_per_s(312e12, digits=3)
    '312 TFLOP/s'
    """
    return _format(flop_per_s, _FLOP_PER_S, digits)


def parse_rate(text: str, *, positive: bool = False) -> float:
    """Events, mostly requests, per second; a bare number is per second.

    >>> parse_rate("100"), parse_rate("300/min"), parse_rate("1.5k req/s")
    (100.0, 5.0, 1500.0)
    """
    return float(_parse(text, _RATE, positive))


def format_rate(requests_per_s: float, digits: int | None = None) -> str:
    """Requests per second as text.

    >>> format_rate(parse_rate("5M/day"), digits=3)
    '57.9 req/s'
    """
    return _format(requests_per_s, _RATE, digits)


def parse_tokens(text: str, *, positive: bool = False) -> int:
    """A whole number of tokens: ``8k`` is 8,000 and ``8Ki`` is 8,192.

    >>> parse_tokens("1,024"), parse_tokens("8k"), parse_tokens("8Ki")
    (1024, 8000, 8192)
    """
    value = _parse(text, _TOKENS, positive)
    if value.denominator != 1:
        raise _refusal(text.strip(), "is not a whole number", f"write {_TOKENS.examples}")
    return int(value)


def format_tokens(tokens: int, digits: int | None = None) -> str:
    """Tokens as text, thousands separated in the exact form too.

    >>> format_tokens(1024), format_tokens(412_344, digits=3)
    ('1,024', '412,000')
    """
    return f"{tokens:,}" if digits is None else _format(tokens, _TOKENS, digits)


def parse_fraction(text: str, *, positive: bool = False) -> float:
    """A share from 0 to 1, never percent.

    >>> parse_fraction("90%")
    0.9
    """
    value = _parse(text, _SHARE, positive)
    if value > 1:
        number = text.strip()
        hint = f"write {_SHARE.examples}"
        if value <= 100 and "%" not in number:
            hint = f"write {number}% or {float(value / 100)!r}"
        raise _refusal(number, "is not a share", hint)
    return float(value)


def format_fraction(share: float, digits: int | None = None) -> str:
    """A share as percent.

    >>> format_fraction(0.9), format_fraction(0.861, digits=3)
    ('90 %', '86.1 %')
    """
    return _format(share, _SHARE, digits)


def parse_money(text: str, *, positive: bool = False) -> float:
    """US dollars.

    >>> parse_money("$2.50"), parse_money("2.50 USD")
    (2.5, 2.5)
    """
    return float(_parse(text, _MONEY, positive))


def format_money(dollars: float, digits: int | None = None) -> str:
    """US dollars as text; where there are cents, there are at least two digits of them.

    >>> format_money(2.5), format_money(1234.5, digits=3)
    ('$2.50', '$1,230')
    """
    whole, dot, cents = _format(abs(dollars), _MONEY, digits).partition(".")
    if digits is None or dot or not dollars:
        whole = f"{whole}.{cents:0<2}"
    return f"{'-' if dollars < 0 else ''}${whole}"


def parse_power(text: str, *, positive: bool = False) -> float:
    """Watts.

    >>> parse_power("1.2 kW")
    1200.0
    """
    return float(_parse(text, _POWER, positive))


def format_power(watts: float, digits: int | None = None) -> str:
    """Watts as text.

    >>> format_power(700.0)
    '700 W'
    """
    return _format(watts, _POWER, digits)


def parse_frequency(text: str, *, positive: bool = False) -> float:
    """Hertz.

    >>> parse_frequency("1830 MHz")
    1830000000.0
    """
    return float(_parse(text, _FREQUENCY, positive))


def format_frequency(hertz: float, digits: int | None = None) -> str:
    """Hertz as text.

    >>> format_frequency(1.83e9)
    '1.83 GHz'
    """
    return _format(hertz, _FREQUENCY, digits)


def format_number(value: float, digits: int = 3) -> str:
    """A plain number to ``digits`` significant digits; an exponent outside 1e-4 to 1e15.

    >>> format_number(153), format_number(25_612), format_number(0.006543)
    ('153', '25,600', '0.00654')
    """
    number = _decimal(_exact(value), Context(prec=digits))
    if not number:
        return "0"
    if Decimal("1e-4") <= abs(number) < Decimal("1e15"):
        return _with_digits(number, digits)
    return f"{number:.{digits - 1}e}"
