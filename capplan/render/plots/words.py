"""Sentences over several lines."""

from __future__ import annotations

import re
import textwrap

_HARD = "\u00a0"  # a space at which no line ends


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` letters; a number stays with its unit.

    >>> wrapped("it leaves 87.4 % empty", 14)
    ['it leaves', '87.4 % empty']
    """
    held = re.sub(r"(?<=\d) (?=\S{1,6}(\s|$))", _HARD, text)
    return [line.replace(_HARD, " ") for line in textwrap.wrap(held, width)]
