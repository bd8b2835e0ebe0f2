"""Fragmentation of the KV cache: paged blocks against static pre-allocation.

Source: Kwon et al. 2023 (arXiv:2309.06180), sec. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence


def blocks_needed(tokens: int, block_size: int) -> int:
    """Blocks that hold a sequence; only the last may be partly empty.

    >>> blocks_needed(35, 16), blocks_needed(32, 16), blocks_needed(1, 16)
    (3, 2, 1)
    """
    return -(-tokens // block_size)


def paged_slots(lengths: Sequence[int], block_size: int) -> int:
    """Token slots that paged sequences occupy.

    >>> paged_slots([35, 12, 67, 89, 44, 25, 93, 18, 51, 76], 16)
    592
    """
    return sum(blocks_needed(length, block_size) for length in lengths) * block_size


def static_slots(lengths: Sequence[int], max_tokens: int) -> int:
    """Token slots when each sequence gets ``max_tokens`` in advance.

    >>> static_slots([35, 12, 67, 89, 44, 25, 93, 18, 51, 76], 128)
    1280
    """
    return len(lengths) * max_tokens


def utilisation(tokens: int, slots: int) -> float:
    """Share of the slots that hold a token.

    >>> round(utilisation(510, 592), 3), round(utilisation(510, 1280), 3)
    (0.861, 0.398)
    """
    return tokens / slots
