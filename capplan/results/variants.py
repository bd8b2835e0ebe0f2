"""A plan and its variants side by side."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.simulate import SimulateResult


@dataclass(frozen=True, slots=True)
class Change:
    """A field of the plan that a variant replaces, as the file has it; None: not given."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of all variants, in their order; None where it says nothing.

    ``kind``: duration | share | ratio | count | rate. ``better``: lower | higher | neither.
    """

    key: str
    name: str
    kind: str
    better: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """A figure that a variant moved, against the plan as it is."""

    key: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class VariantResult:
    """``better`` and ``worse``: what it cures and what that costs, the largest move first."""

    name: str
    note: str | None
    changes: tuple[Change, ...]
    better: tuple[Effect, ...]
    worse: tuple[Effect, ...]
    result: SimulateResult


@dataclass(frozen=True, slots=True)
class VariantsResult:
    """``feasible`` is that of the plan as it is, the first of the variants."""

    feasible: bool
    rule: str  # which moves count as effects
    figures: tuple[Figure, ...]
    variants: tuple[VariantResult, ...]
