"""GPUs over traffic: what a fleet of the chosen kind needs at other rates. For plots."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.bands import ErrorBand


@dataclass(frozen=True, slots=True)
class TrafficPoint:
    """GPUs of the replicas that carry ``arrival_rate_per_s``, without spares or whole nodes.

    ``num_gpus_low`` and ``num_gpus_high`` are those if the model is wrong by its band.
    """

    arrival_rate_per_s: float
    num_gpus: int
    num_gpus_low: int
    num_gpus_high: int


@dataclass(frozen=True, slots=True)
class TrafficCurve:
    """``points`` rise in rate; where the count steps there are two at one rate."""

    points: tuple[TrafficPoint, ...]
    band: ErrorBand
    requests_per_s_per_replica: float
    gpus_per_replica: int
