"""Mixture-of-experts arithmetic."""

from __future__ import annotations


def distinct_experts(num_experts: int, experts_per_token: int, tokens: float) -> float:
    """Expected number of experts that a batch touches when routing is even.

    An expert is missed by one token with probability 1 - k/E and by all with its power, so
    E (1 - (1 - k/E)^tokens) are read (coupon collector; used by e.g. Gale et al. 2022 and
    confirmed by measured MoE kernels in `docs/model.md`).

    >>> distinct_experts(8, 2, 1)
    2.0
    >>> round(distinct_experts(256, 8, 64), 1)
    222.4
    """
    missed: float = (1 - experts_per_token / num_experts) ** tokens
    return num_experts * (1 - missed)
