"""The error band that each figure of a plan takes."""

from __future__ import annotations

from math import ceil

from capplan.performance.bands import BandKey, band_for
from capplan.results.bands import BandedFigure

# Whose bands stand where no engine is named: the newest of those that were measured most.
BAND_ENGINE = "vllm-v1"


def latency_band(
    figure: str, statistic: str, percentile: float, value: float, ttft_s: float | None, key: BandKey
) -> BandedFigure:
    """Waiting is most of a late first token: percentiles above the median take P99's band."""
    ttft = band_for("ttft_p99" if percentile > 50 else "ttft", key)
    if figure in ("ttft", "queue"):
        return BandedFigure.of(figure, statistic, value, ttft)
    tpot = band_for("tpot", key)
    if figure != "e2e":
        return BandedFigure.of(figure, statistic, value, tpot)
    # The first token by its band, those after it by theirs.
    first_s = min(ttft_s or 0.0, value)
    (low, high), (rest_low, rest_high) = ttft.around(first_s), tpot.around(value - first_s)
    return BandedFigure.between("e2e", statistic, value, (low + rest_low, high + rest_high), tpot)


def throughput_band(
    value: float, fullness: float | None, key: BandKey, figure: str = "output_tokens_per_s"
) -> BandedFigure:
    """Of tokens or requests a second.

    ``fullness``: offered over capacity, where the traffic sets the pace; no server gives more
    than is asked for, and it gives less only if its capacity lies below.
    """
    band = band_for("throughput", key)
    low, high = band.around(value)
    if fullness is not None:
        low = value * min(1.0, band.low_ratio / fullness)
        high = value
    return BandedFigure.between(figure, "mean", value, (low, high), band)


def gpus_band(
    num_gpus: int,
    gpus_per_replica: int,
    arrival_rate_per_s: float,
    replica_requests_per_s: float,
    key: BandKey,
    least_gpus: int = 0,
) -> BandedFigure:
    """GPUs that the rate needs if a replica carries as much as throughput's band ends say.

    ``least_gpus`` are needed however quick they are: their memory is.
    """
    band = band_for("throughput", key)
    slow, quick = band.around(replica_requests_per_s)

    def count(requests_per_s: float) -> int:
        return ceil(arrival_rate_per_s / requests_per_s) * gpus_per_replica

    low = min(num_gpus, max(least_gpus, count(quick)))
    high = max(num_gpus, count(slow))
    return BandedFigure.between("num_gpus", "mean", num_gpus, (low, high), band)
