"""The roofline model: Williams, Waterman, Patterson, CACM 52(4), 2009."""

from __future__ import annotations


def intensity_flop_per_byte(flop: float, hbm_bytes: float) -> float:
    """Operational intensity: work per byte of memory traffic, FLOP/byte (Williams 2009, sec. 3).

    >>> intensity_flop_per_byte(flop=2 * 7e9, hbm_bytes=2 * 7e9)
    1.0
    """
    return flop / hbm_bytes


def ridge_flop_per_byte(peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Intensity at which the two roofs meet, FLOP/byte (Williams 2009, sec. 3).

    An A100 80 GB SXM, FP16 dense 312 TFLOP/s and 2,039 GB/s:

    >>> round(ridge_flop_per_byte(312e12, 2039e9), 1)
    153.0
    """
    return peak_flops_per_s / bandwidth_bytes_per_s


def attainable_flop_per_s(
    intensity: float, peak_flops_per_s: float, bandwidth_bytes_per_s: float
) -> float:
    """The roof over an intensity: min(peak, bandwidth x intensity) (Williams 2009, eq. 1).

    >>> round(attainable_flop_per_s(1.0, 312e12, 2039e9) / 312e12, 6)
    0.006535
    """
    return min(peak_flops_per_s, bandwidth_bytes_per_s * intensity)


def min_time_s(
    flop: float, hbm_bytes: float, peak_flops_per_s: float, bandwidth_bytes_per_s: float
) -> float:
    """Shortest time in which the work and its traffic can be done, seconds.

    Compute and traffic overlap perfectly: max(flop / peak, bytes / bandwidth).

    >>> round(min_time_s(14e9, 14e9, 312e12, 2039e9) * 1e3, 2)  # one decode step, 7e9 FP16
    6.87
    """
    return max(flop / peak_flops_per_s, hbm_bytes / bandwidth_bytes_per_s)
