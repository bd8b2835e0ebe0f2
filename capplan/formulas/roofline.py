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


def mfu(flop: float, time_s: float, peak_flops_per_s: float) -> float:
    """Model FLOP utilisation: work of the model over what the peak does in that time.

    Source: Chowdhery et al., PaLM, 2022, appendix B. One decode step of 7e9 parameters at a batch
    of 32, in 8 ms on an A100:

    >>> round(mfu(32 * 14e9, 8e-3, 312e12), 3)
    0.179
    """
    return flop / (time_s * peak_flops_per_s)


def mbu(needed_bytes: float, time_s: float, bandwidth_bytes_per_s: float) -> float:
    """Model bandwidth utilisation: weights and KV over what memory moves in that time.

    Source: Agarwal et al., LLM Inference Performance Engineering, Databricks, 2023; their example
    is a 7B in 16 bits at 14 ms a token, 1 TB/s of the 2 TB/s of an A100.

    >>> mbu(14e9, 14e-3, 2e12)
    0.5
    """
    return needed_bytes / (time_s * bandwidth_bytes_per_s)
