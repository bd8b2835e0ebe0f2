"""How wrong predictions are for one's own server: of runs that the fit has not seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from capplan.accuracy.calibrate import Fit
from capplan.accuracy.load import Load, load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.accuracy.utilisation import utilisation
from capplan.formulas.statistics import covering_range
from capplan.performance.bands import LOADED_FRACTION
from capplan.results.calibration import OwnErrorRange
from capplan.specs.error_bands import Figure, load_bands

_FIGURES: dict[str, Figure] = {
    "TPOT": "tpot", "TTFT": "ttft", "TTFT P99": "ttft_p99", "throughput": "throughput",
}  # fmt: skip
# Of an open loop the offered rate sets it, not the server.
_PACED = ("poisson", "constant-rate")


def own_errors(runs: Sequence[MeasuredRun], fit: Fit) -> tuple[OwnErrorRange, ...]:
    """Ranges of measured / predicted, each holding as much as the shipped bands mean to."""
    loads = [_load(run, fit) for run in runs]
    found: dict[tuple[Figure, bool], list[float]] = defaultdict(list)
    for figure, error in zip(fit.figures, fit.errors_left_out, strict=True):
        kind = _FIGURES.get(figure.name)
        load, loaded = loads[figure.run]
        if kind is None or (kind == "throughput" and load.kind in _PACED):
            continue
        found[kind, loaded].append(-error)
    coverage = load_bands().coverage
    ranges = []
    for (kind, loaded), logs in sorted(found.items()):
        low, high = covering_range(logs, coverage)
        # As of the shipped bands: they hold the prediction itself.
        low, high = math.exp(min(0.0, low)), math.exp(max(0.0, high))
        ranges.append(OwnErrorRange(kind, loaded, len(logs), low, high))
    return tuple(ranges)


def _load(run: MeasuredRun, fit: Fit) -> tuple[Load, bool]:
    """And whether it was near to what the server can carry."""
    settings, load = settings_of(run), load_of(run)
    if load.limits is not None:  # raised until limits were met
        return load, True
    used = utilisation(settings, load, server_of(settings, fit.calibration))
    return load, used >= LOADED_FRACTION
