"""What a deployment does under its stated traffic: simulated, or bounded where it cannot be."""

from __future__ import annotations

from dataclasses import dataclass


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
    """``needed_replicas``: the fewest that meet every limit, 0 where no number does."""

    rate_per_s: float | None
    num_replicas: int
    saturated: bool
    levels: tuple[Level, ...]
    needed_replicas: int
    steps: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def ttft_s(self) -> float | None:
        return next((level.value_s for level in self.levels if level.key == "ttft"), None)

    @property
    def meets(self) -> bool:
        return not self.saturated and all(level.met for level in self.levels)
