"""What the user did not say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that the user did not say: what was taken, and which option changes it."""

    what: str
    value: str
    option: str
