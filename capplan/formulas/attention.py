"""Work of the attention kernels; projections are matrix products and counted as such."""

from __future__ import annotations


def context_reads(new_tokens: int, context_tokens: int, window: int | None = None) -> int:
    """Positions that a causal chunk attends to, summed over its tokens.

    Token i of the chunk (from 0) sees itself and all ``context_tokens + i`` before it, at most
    ``window`` of them. Closed form of ``sum(min(context + i + 1, window))``.

    >>> context_reads(4, 0)  # 1 + 2 + 3 + 4
    10
    >>> context_reads(4, 10, window=12)  # 11 + 12 + 12 + 12
    47
    """
    if window is None:
        return new_tokens * context_tokens + new_tokens * (new_tokens + 1) // 2
    growing = min(max(window - context_tokens, 0), new_tokens)
    return context_reads(growing, context_tokens) + (new_tokens - growing) * window


def attention_flop(num_heads: int, qk_dim: int, value_dim: int, reads: float) -> float:
    """FLOP of scores and weighted sum: 2 per multiply-add, heads x (qk + v) per position read.

    Source: Korthikanti et al. 2022 (arXiv:2205.05198), sec. A, without the softmax.

    >>> attention_flop(32, 128, 128, reads=1)
    16384
    """
    return 2 * num_heads * (qk_dim + value_dim) * reads


def state_flop(num_heads: int, key_dim: int, value_dim: int) -> int:
    """FLOP of one recurrent update of a linear-attention layer for one token.

    Decay, outer-product update and read-out of a key_dim x value_dim state a head: about six
    operations an element (Yang et al. 2024, arXiv:2412.06464, eq. 10 for the gated delta rule).

    >>> state_flop(1, 2, 2)
    24
    """
    return 6 * num_heads * key_dim * value_dim


def indexer_flop(num_heads: int, head_dim: int, reads: float) -> float:
    """FLOP of a sparse-attention indexer: the score of each head for each position.

    Source: DeepSeek-V3.2-Exp report (2025), eq. 1, without the sum over heads.

    >>> indexer_flop(64, 128, reads=1)
    16384
    """
    return 2 * num_heads * head_dim * reads
