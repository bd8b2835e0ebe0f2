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

from capplan.units.families import GB, GIB, MIB, TERA
from capplan.units.quantities import (
    format_bytes,
    format_bytes_per_s,
    format_duration,
    format_flop_per_s,
    format_fraction,
    format_frequency,
    format_money,
    format_number,
    format_power,
    format_rate,
    format_tokens,
    parse_bytes,
    parse_bytes_per_s,
    parse_duration,
    parse_flop_per_s,
    parse_fraction,
    parse_frequency,
    parse_money,
    parse_power,
    parse_rate,
    parse_tokens,
)

__all__ = [
    "GB",
    "GIB",
    "MIB",
    "TERA",
    "format_bytes",
    "format_bytes_per_s",
    "format_duration",
    "format_flop_per_s",
    "format_fraction",
    "format_frequency",
    "format_money",
    "format_number",
    "format_power",
    "format_rate",
    "format_tokens",
    "parse_bytes",
    "parse_bytes_per_s",
    "parse_duration",
    "parse_flop_per_s",
    "parse_fraction",
    "parse_frequency",
    "parse_money",
    "parse_power",
    "parse_rate",
    "parse_tokens",
]
