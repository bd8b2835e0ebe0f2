"""One parser and one formatter for each kind of quantity; the module `capplan.units` says how."""

from __future__ import annotations

from decimal import Context, Decimal

from capplan.units.families import (
    BYTES,
    BYTES_PER_S,
    DURATION,
    FLOP_PER_S,
    FREQUENCY,
    GB_SCALE,
    GIB_SCALE,
    MONEY,
    POWER,
    RATE,
    SHARE,
    TOKENS,
)
from capplan.units.text import decimal, exact, format_text, parse, refusal, with_digits


def parse_duration(text: str, *, positive: bool = False) -> float:
    """Seconds; a bare number is refused.

    >>> parse_duration("400ms")
    0.4
    """
    return float(parse(text, DURATION, positive))


def format_duration(seconds: float, digits: int | None = None) -> str:
    """Seconds as text.

    >>> format_duration(0.4), format_duration(0.00687123, digits=3)
    ('400 ms', '6.87 ms')
    """
    return format_text(seconds, DURATION, digits)


def parse_bytes(text: str, *, positive: bool = False) -> int:
    """Bytes, to the nearest one; ``Gb``, ``G`` and a bare number are refused.

    >>> parse_bytes("80GB"), parse_bytes("80GiB")
    (80000000000, 85899345920)
    """
    return round(parse(text, BYTES, positive))


def format_bytes(size: float, *, binary: bool, digits: int | None = None) -> str:
    """Bytes as text, in GiB and its kin if ``binary``, else in GB; exact to the whole byte.

    >>> format_bytes(80e9, binary=False), format_bytes(57e9, binary=True, digits=3)
    ('80 GB', '53.1 GiB')
    """
    if digits is None:
        size = round(exact(size))
    return format_text(size, BYTES, digits, GIB_SCALE if binary else GB_SCALE)


def parse_bytes_per_s(text: str, *, positive: bool = False) -> float:
    """Bytes per second, of memory (``TB/s``) or a link (``Gbit/s``); ``Gb/s`` is refused.

    >>> parse_bytes_per_s("3.35 TB/s"), parse_bytes_per_s("400 Gbit/s")
    (3350000000000.0, 50000000000.0)
    """
    return float(parse(text, BYTES_PER_S, positive))


def format_bytes_per_s(bytes_per_s: float, digits: int | None = None) -> str:
    """Bytes per second as text.

    >>> format_bytes_per_s(2.039e12, digits=4)
    '2.039 TB/s'
    """
    return format_text(bytes_per_s, BYTES_PER_S, digits)


def parse_flop_per_s(text: str, *, positive: bool = False) -> float:
    """FLOP, or integer operations, per second; ``TFLOPS`` and ``TOPS`` say the same.

    >>> parse_flop_per_s("989.4 TFLOP/s")
    989400000000000.0
    """
    return float(parse(text, FLOP_PER_S, positive))


def format_flop_per_s(flop_per_s: float, digits: int | None = None) -> str:
    """FLOP per second as text.

    >>> format_flop_per_s(312e12, digits=3)
    '312 TFLOP/s'
    """
    return format_text(flop_per_s, FLOP_PER_S, digits)


def parse_rate(text: str, *, positive: bool = False) -> float:
    """Events, mostly requests, per second; a bare number is per second.

    >>> parse_rate("100"), parse_rate("300/min"), parse_rate("1.5k req/s")
    (100.0, 5.0, 1500.0)
    """
    return float(parse(text, RATE, positive))


def format_rate(requests_per_s: float, digits: int | None = None) -> str:
    """Requests per second as text.

    >>> format_rate(parse_rate("5M/day"), digits=3)
    '57.9 req/s'
    """
    return format_text(requests_per_s, RATE, digits)


def parse_tokens(text: str, *, positive: bool = False) -> int:
    """A whole number of tokens: ``8k`` is 8,000 and ``8Ki`` is 8,192.

    >>> parse_tokens("1,024"), parse_tokens("8k"), parse_tokens("8Ki")
    (1024, 8000, 8192)
    """
    value = parse(text, TOKENS, positive)
    if value.denominator != 1:
        raise refusal(text.strip(), "is not a whole number", f"write {TOKENS.examples}")
    return int(value)


def format_tokens(tokens: int, digits: int | None = None) -> str:
    """Tokens as text, thousands separated in the exact form too.

    >>> format_tokens(1024), format_tokens(412_344, digits=3)
    ('1,024', '412,000')
    """
    return f"{tokens:,}" if digits is None else format_text(tokens, TOKENS, digits)


def parse_fraction(text: str, *, positive: bool = False) -> float:
    """A share from 0 to 1, never percent.

    >>> parse_fraction("90%")
    0.9
    """
    value = parse(text, SHARE, positive)
    if value > 1:
        number = text.strip()
        hint = f"write {SHARE.examples}"
        if value <= 100 and "%" not in number:
            hint = f"write {number}% or {float(value / 100)!r}"
        raise refusal(number, "is not a share", hint)
    return float(value)


def format_fraction(share: float, digits: int | None = None) -> str:
    """A share as percent.

    >>> format_fraction(0.9), format_fraction(0.861, digits=3)
    ('90 %', '86.1 %')
    """
    return format_text(share, SHARE, digits)


def parse_money(text: str, *, positive: bool = False) -> float:
    """US dollars.

    >>> parse_money("$2.50"), parse_money("2.50 USD")
    (2.5, 2.5)
    """
    return float(parse(text, MONEY, positive))


def format_money(dollars: float, digits: int | None = None) -> str:
    """US dollars as text; where there are cents, there are at least two digits of them.

    >>> format_money(2.5), format_money(1234.5, digits=3)
    ('$2.50', '$1,230')
    """
    whole, dot, cents = format_text(abs(dollars), MONEY, digits).partition(".")
    if digits is None or dot or not dollars:
        whole = f"{whole}.{cents:0<2}"
    return f"{'-' if dollars < 0 else ''}${whole}"


def parse_power(text: str, *, positive: bool = False) -> float:
    """Watts.

    >>> parse_power("1.2 kW")
    1200.0
    """
    return float(parse(text, POWER, positive))


def format_power(watts: float, digits: int | None = None) -> str:
    """Watts as text.

    >>> format_power(700.0)
    '700 W'
    """
    return format_text(watts, POWER, digits)


def parse_frequency(text: str, *, positive: bool = False) -> float:
    """Hertz.

    >>> parse_frequency("1830 MHz")
    1830000000.0
    """
    return float(parse(text, FREQUENCY, positive))


def format_frequency(hertz: float, digits: int | None = None) -> str:
    """Hertz as text.

    >>> format_frequency(1.83e9)
    '1.83 GHz'
    """
    return format_text(hertz, FREQUENCY, digits)


def format_number(value: float, digits: int = 3) -> str:
    """A plain number to ``digits`` significant digits; an exponent outside 1e-4 to 1e15.

    >>> format_number(153), format_number(25_612), format_number(0.006543)
    ('153', '25,600', '0.00654')
    """
    number = decimal(exact(value), Context(prec=digits))
    if not number:
        return "0"
    if Decimal("1e-4") <= abs(number) < Decimal("1e15"):
        return with_digits(number, digits)
    return f"{number:.{digits - 1}e}"
