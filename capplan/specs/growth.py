"""How traffic grows: `20%/month` or `100%/year`, over `6mo` or `2y`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from capplan.errors import QuantityError
from capplan.specs.fields import Spec, Text
from capplan.units import parse_fraction

MAX_MONTHS = 120
DEFAULT_HORIZON = "6mo"
_PER_YEAR = 12


def parse_growth(text: str) -> float:
    """The share a month; raises QuantityError.

    >>> parse_growth("20%/month"), round(parse_growth("100%/year"), 4)
    (0.2, 0.0595)
    """
    share, _, period = (part.strip() for part in text.partition("/"))
    try:
        rate = parse_fraction(share if "%" in share else "nothing")
    except QuantityError:
        rate = -1.0
    if rate < 0 or rate > 1 or period not in ("month", "mo", "year", "y"):
        raise QuantityError(
            f"`{text[:40]}` is not understood",
            hint="write it like `20%/month` or `100%/year`; at most 100 %",
        )
    return rate if period in ("month", "mo") else (1 + rate) ** (1 / _PER_YEAR) - 1


def parse_months(text: str) -> int:
    """Whole months; raises QuantityError.

    >>> parse_months("6mo"), parse_months("2y")
    (6, 24)
    """
    found = re.fullmatch(r"(\d{1,3}) ?(mo|month|months|y|year|years)", text.strip(), re.ASCII)
    months = 0 if found is None else int(found[1]) * (_PER_YEAR if found[2][0] == "y" else 1)
    if not 1 <= months <= MAX_MONTHS:
        raise QuantityError(
            f"`{text[:40]}` is not understood",
            hint=f"write it like `6mo` or `2y`; at most {MAX_MONTHS} months",
        )
    return months


def _growth(text: str) -> str:
    parse_growth(text)
    return text


def _months(text: str) -> str:
    parse_months(text)
    return text


class GrowthSpec(Spec):
    """The fleet of the months to come, for `capplan gpus`."""

    rate: Annotated[Text, AfterValidator(_growth)] = Field(
        description="Of the traffic: `20%/month` or `100%/year`."
    )
    horizon: Annotated[Text, AfterValidator(_months)] = Field(
        default=DEFAULT_HORIZON, description="How far: `6mo` or `2y`."
    )
