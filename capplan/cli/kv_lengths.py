"""Request lengths from an option: a text, or a file."""

from __future__ import annotations

from capplan.planner.lengths import parse_lengths, quantiles
from capplan.specs.length_files import parse_length_file, read_length_file


def read_lengths(text: str) -> tuple[int, ...]:
    """``@lengths.txt``, ``@trace.csv:column``, or what `parse_lengths` knows."""
    if not text.startswith("@"):
        return parse_lengths(text)
    return quantiles(read_length_file(parse_length_file(text)))
