"""What a deployment does under its stated traffic: simulated, or bounded where it cannot be."""

from __future__ import annotations

from dataclasses import dataclass

from capplan import units
from capplan.results.bands import BandedFigure


@dataclass(frozen=True, slots=True)
class Level:
    """A limit, and what was predicted of it; ``value_s`` None where nobody can tell."""

    key: str
    name: str
    limit_s: float
    value_s: float | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """``needed_replicas``: the fewest that meet every limit, 0 where no number does.

    Of one or two that meet them it is their number: nothing could be saved.
    """

    rate_per_s: float | None
    num_replicas: int
    saturated: bool
    levels: tuple[Level, ...]
    needed_replicas: int
    steps: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def ttft(self) -> Level | None:
        return next((level for level in self.levels if level.key == "ttft"), None)

    @property
    def meets(self) -> bool:
        return not self.saturated and all(level.met for level in self.levels)


def banded(name: str, band: BandedFigure) -> str:
    """`TTFT P99 420 ms, 80 % band 130 ms to 920 ms: 24 measured rows of ..`."""
    value, low, high = (
        units.format_duration(seconds, digits=digits)
        for seconds, digits in ((band.value, 3), (band.low, 2), (band.high, 2))
    )
    return f"{name} {value}, {band.coverage_fraction:.0%} band {low} to {high}: {band.words}"
