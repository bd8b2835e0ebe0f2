"""The times of a class of requests, whatever describes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from capplan.simulator.traffic.arrivals import all_at_once, arrival_batches
from capplan.simulator.traffic.curves import curve_of
from capplan.simulator.traffic.servegen import ClientRates
from capplan.simulator.traffic.streams import stream
from capplan.specs.rates import ConstantRate, ServegenRates
from capplan.specs.traffic import DEFAULT_RATE_PER_S, TrafficClass


class Timing:
    """Arrivals of one class, again and again the same."""

    def __init__(
        self, spec: TrafficClass, seed: int, name: str, folder: Path, from_s: float = 0.0
    ) -> None:
        """``from_s``: the clock starts so far into a curve over time.

        Raises CapplanError where a file of rates is at fault.
        """
        self._arrivals, self._seed, self._name = spec.arrivals, seed, name
        rate = spec.rate or ConstantRate(rate=DEFAULT_RATE_PER_S)
        self._clients = ClientRates(rate, folder) if isinstance(rate, ServegenRates) else None
        at_once = spec.arrivals.kind == "burst" and spec.arrivals.size is None
        self._curve = None
        if not at_once and not isinstance(rate, ServegenRates):
            self._curve = curve_of(rate, spec.peak_factor).begun(from_s)

    def mean_per_s(self, num_requests: float | None, duration_s: float | None) -> float | None:
        """Over a run that ends there, or over the whole curve; None where all come at once."""
        if self._clients is not None:
            return self._clients.mean_over(duration_s)
        return self._curve.mean_over(num_requests, duration_s) if self._curve is not None else None

    def batches(self) -> Iterator[list[float]]:
        """Rising times in seconds."""
        if self._clients is not None:
            return self._clients.batches(self._seed, self._name)
        if self._curve is None:
            return all_at_once()
        random = stream(self._seed, f"{self._name}arrivals")
        return arrival_batches(self._arrivals, self._curve, random)
