"""How far errors of like rows spread: by kind of row, and the margin that makes bands hold."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from capplan.accuracy.client_metrics import quantile
from capplan.performance.bands import BandKey, Kind, kinds
from capplan.specs.error_bands import Figure

COVERAGE = 0.8
LEAST_ROWS = 8
INNER = 0.25  # the outer rows' share on either side; the margin makes up for them
PRIOR_UNITS = 2.0  # units whose word the wider kind or class has; 1 to 4 give bands alike
Spread = tuple[float, float]  # below (negative), above; natural logarithms
Spreads = dict[Kind, tuple[float, float, int]]  # with rows
# Experts, load, engine, generation, several GPUs: a class of rows, or the first of these.
Class = tuple[bool | str, ...]
Margins = dict[Class, float]
ANY: Kind = (None, None, None, None, None)


@dataclass(frozen=True)
class Ratio:
    """One measured figure over its prediction."""

    figure: Figure
    key: BandKey
    unit: tuple[str, str]  # source, generation: kept out together
    value: float
    row: str = ""


def spreads_of(ratios: Sequence[Ratio]) -> Spreads:
    """Of each kind that has rows enough, from the widest to the narrowest."""
    members: dict[Kind, list[Ratio]] = defaultdict(list)
    wider: dict[Kind, list[Kind]] = {}
    for ratio in ratios:
        order = kinds(ratio.key)
        for at, kind in enumerate(order):
            members[kind].append(ratio)
            wider.setdefault(kind, order[at + 1 :])
    found: Spreads = {}
    typical: dict[Kind, Spread] = {}  # of one unit of the kind
    for kind in sorted(members, key=lambda kind: (-len(wider[kind]), str(kind)), reverse=True):
        rows = members[kind]
        units: dict[tuple[str, str], list[Ratio]] = defaultdict(list)
        for ratio in rows:
            units[ratio.unit].append(ratio)
        own = _middle(rows)
        alone = [_middle(some) for some in units.values()]
        unit = median(below for below, _ in alone), median(above for _, above in alone)
        parent = next((typical[other] for other in wider[kind] if other in typical), None)
        if parent is not None:
            share = len(units) / (len(units) + PRIOR_UNITS)
            own, unit = _between(share, own, parent), _between(share, unit, parent)
        typical[kind] = unit
        num_rows = len({ratio.row for ratio in rows})
        if num_rows >= LEAST_ROWS or kind == ANY:
            found[kind] = (*own, num_rows)
    return found


def _middle(ratios: Sequence[Ratio]) -> Spread:
    logs = sorted(math.log(ratio.value) for ratio in ratios)
    return min(0.0, quantile(logs, INNER)), max(0.0, quantile(logs, 1 - INNER))


def _between(share: float, one: Spread, other: Spread) -> Spread:
    below, above = (share * a + (1 - share) * b for a, b in zip(one, other, strict=True))
    return below, above


@dataclass(frozen=True)
class Tested:
    """A row with the spread of its kind in a table made without its unit."""

    ratio: Ratio
    below: float
    above: float

    @property
    def excess(self) -> float:
        """How much wider the spread would have to be to hold the row; below 0, how much less."""
        log = math.log(self.ratio.value)
        return max(self.below - log, log - self.above)

    @property
    def of(self) -> Class:
        key = self.ratio.key
        return key.experts, key.loaded, key.engine, key.architecture, key.several_gpus

    def widened(self, margins: Margins) -> Tested:
        margin = margin_of(margins, self.of)
        return replace(
            self, below=min(0.0, self.below - margin), above=max(0.0, self.above + margin)
        )


def held_out(ratios: Sequence[Ratio]) -> list[Tested]:
    """Each row with the spreads of its kind among the other units."""
    found = []
    for unit in sorted({ratio.unit for ratio in ratios}):
        spreads = spreads_of([ratio for ratio in ratios if ratio.unit != unit])
        for ratio in ratios:
            if ratio.unit == unit:
                kind = next(kind for kind in kinds(ratio.key) if kind in spreads)
                found.append(Tested(ratio, *spreads[kind][:2]))
    return found


def margins_of(tested: Sequence[Tested]) -> Margins:
    """By class, the wider before the narrower; one of few units leans on the next wider."""
    members: dict[Class, list[Tested]] = defaultdict(list)
    for test in tested:
        for num in range(len(test.of) + 1):
            members[test.of[:num]].append(test)
    found: Margins = {}
    for name in sorted(members, key=len):
        rows = members[name]
        units = len({test.ratio.unit for test in rows})
        share = units / (units + PRIOR_UNITS)
        own = quantile(sorted(test.excess for test in rows), COVERAGE)
        found[name] = share * own + (1 - share) * (found[name[:-1]] if name else own)
    return found


def margin_of(margins: Margins, of: Class) -> float:
    """Of a class, or of the next wider one that has rows."""
    while of not in margins:
        of = of[:-1]
    return margins[of]


def class_of(kind: Kind) -> Class:
    """The narrowest class that holds all rows of a cell."""
    architecture, engine, experts, several_gpus, loaded = kind
    order = (experts, loaded, engine, architecture, several_gpus)
    return tuple(itertools.takewhile(lambda value: value is not None, order))  # type: ignore[arg-type]


def covered(tested: Sequence[Tested]) -> float:
    return sum(test.excess <= 0 for test in tested) / len(tested)
