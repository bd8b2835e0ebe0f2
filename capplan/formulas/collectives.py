"""Time of collective operations."""

from __future__ import annotations


def all_reduce_time_s(
    message_bytes: float, num_gpus: int, latency_s: float, bus_bandwidth_bytes_per_s: float
) -> float:
    """One all-reduce: latency + 2 (n - 1)/n x bytes / bus bandwidth, seconds.

    The bus bandwidth is NCCL's: the algorithm's bandwidth times 2 (n - 1)/n
    (NVIDIA nccl-tests, PERFORMANCE.md).

    >>> all_reduce_time_s(8e6, 1, 5e-6, 100e9)
    0.0
    >>> round(all_reduce_time_s(8e6, 2, 5e-6, 100e9) * 1e6)
    85
    """
    if num_gpus == 1:
        return 0.0
    moved = 2 * (num_gpus - 1) / num_gpus * message_bytes
    return latency_s + moved / bus_bandwidth_bytes_per_s
