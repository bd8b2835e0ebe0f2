"""How wrong predictions are for one's own server: of runs that the fit has not seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from capplan.accuracy.calibrate import Fit
from capplan.accuracy.load import Load, load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.settings import settings_of
from capplan.accuracy.utilisation import band_key_of
from capplan.formulas.statistics import covering_range
from capplan.performance.bands import BandKey
from capplan.results.calibration import OwnErrorRange
from capplan.specs.error_bands import Figure, load_bands

_FIGURES: dict[str, Figure] = {
    "TPOT": "tpot", "TTFT": "ttft", "TTFT P99": "ttft_p99", "throughput": "throughput",
}  # fmt: skip
# Of an open loop the offered rate sets it, not the server.
_PACED = ("poisson", "constant-rate")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Measured / predicted of one figure of a run that was left out, as logarithm."""

    figure: Figure
    key: BandKey  # which band the shipped table has for it
    log_ratio: float


def own_errors(runs: Sequence[MeasuredRun], fit: Fit) -> tuple[OwnErrorRange, ...]:
    """Ranges of measured / predicted, each holding as much as the shipped bands mean to."""
    found: dict[tuple[Figure, bool], list[float]] = defaultdict(list)
    for one in left_out_errors(runs, fit):
        found[one.figure, one.key.loaded].append(one.log_ratio)
    return tuple(range_of(figure, loaded, logs) for (figure, loaded), logs in sorted(found.items()))


def range_of(figure: Figure, loaded: bool, logs: Sequence[float]) -> OwnErrorRange:
    """As of the shipped bands: it holds the prediction itself."""
    low, high = covering_range(logs, load_bands().coverage)
    ends = math.exp(min(0.0, low)), math.exp(max(0.0, high))
    return OwnErrorRange(figure, loaded, len(logs), *ends)


def left_out_errors(runs: Sequence[MeasuredRun], fit: Fit) -> list[LeftOut]:
    """Of every figure that has a band; an open loop's throughput says nothing of the server."""
    loads = [_load(run, fit) for run in runs]
    found = []
    for figure, error in zip(fit.figures, fit.errors_left_out, strict=True):
        kind = _FIGURES.get(figure.name)
        load, key = loads[figure.run]
        if kind is not None and not (kind == "throughput" and load.kind in _PACED):
            found.append(LeftOut(kind, key, -error))
    return found


def _load(run: MeasuredRun, fit: Fit) -> tuple[Load, BandKey]:
    """And the kind of measured rows that it is like."""
    load = load_of(run)
    return load, band_key_of(settings_of(run), load, fit.calibration)
