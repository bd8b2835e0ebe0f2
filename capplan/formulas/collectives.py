"""Time of collective operations."""

from __future__ import annotations


def all_reduce_time_s(
    message_bytes: float,
    num_gpus: int,
    latency_s: float,
    bus_bandwidth_bytes_per_s: float,
    half_bytes: float = 0.0,
) -> float:
    """One all-reduce: latency + (moved + sqrt(moved x half)) / bus bandwidth, seconds.

    2 (n - 1)/n of the message are moved; the bus bandwidth is NCCL's, the algorithm's times the
    same factor (NVIDIA nccl-tests, PERFORMANCE.md). ``half_bytes`` are moved at half of it: more
    GPUs need larger messages to fill their links, and measured times follow the root over four
    orders of size (docs/model.md).

    >>> all_reduce_time_s(8e6, 1, 5e-6, 100e9)
    0.0
    >>> round(all_reduce_time_s(8e6, 2, 5e-6, 100e9) * 1e6)
    85
    >>> round(all_reduce_time_s(8e6, 2, 5e-6, 100e9, half_bytes=8e6) * 1e6)
    165
    """
    if num_gpus == 1:
        return 0.0
    moved = 2 * (num_gpus - 1) / num_gpus * message_bytes
    slowed: float = moved + (moved * half_bytes) ** 0.5
    return latency_s + slowed / bus_bandwidth_bytes_per_s
