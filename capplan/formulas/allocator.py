"""What an allocation takes from the device, and the tables that a loaded model brings along."""

from __future__ import annotations

MIB = 2**20


def allocated_bytes(num_bytes: int) -> int:
    """Bytes that PyTorch's caching allocator counts for one tensor.

    Sizes are rounded to 512 bytes. From 10 MiB on (``kMinLargeAlloc``) a tensor gets a segment of
    its own, rounded up to 2 MiB; the rest is given back only where it exceeds 1 MiB
    (``should_split``). Source: c10/cuda/CUDACachingAllocator.cpp.

    >>> allocated_bytes(1), allocated_bytes(12 * MIB), allocated_bytes(129 * MIB + 512)
    (512, 12582912, 136314880)
    >>> allocated_bytes(128 * MIB + 512) == 128 * MIB + 512  # the rest, 2 MiB - 512 B, is split off
    True
    """
    size = -(-num_bytes // 512) * 512
    if size < 10 * MIB:
        return size
    segment = -(-size // (2 * MIB)) * 2 * MIB
    return segment if segment - size <= MIB else size


def rotary_cache_bytes(max_positions: int, rotary_dim: int, element_bytes: int = 2) -> int:
    """Cosines and sines of every position, as vLLM keeps them: positions x rotary dim x bytes.

    Llama-3-8B is logged at 14.9595 GiB, Llama-3.1-8B at 14.9888: 2 and 32 MiB of this.

    >>> rotary_cache_bytes(131072, 128) // MIB
    32
    """
    return max_positions * rotary_dim * element_bytes
