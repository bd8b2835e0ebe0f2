"""Mixture-of-experts arithmetic."""

from __future__ import annotations

EVEN_UP_TO = 16  # experts


def distinct_experts(num_experts: int, experts_per_token: int, tokens: float) -> float:
    """Expected number of experts that a batch touches.

    An expert that a token chooses with probability p is missed by all with (1 - p)^tokens. Of few
    large experts p is about k/E (Mixtral, 2401.04088, section 5: near-uniform over all domains), so
    E (1 - (1 - k/E)^tokens) are read (coupon collector; Gale et al. 2022). Many small ones
    specialise: NVIDIA's aiconfigurator measures its kernels under power laws of load. With p spread
    as Beta(1, E/k - 1), the exponential's counterpart between 0 and 1 with mean k/E,
    E k tokens / (E + k (tokens - 1)) are read: up to a quarter less, which served batches of 8 to
    128 sequences bear out (`docs/model.md`).

    >>> distinct_experts(8, 2, 1), distinct_experts(256, 8, 1)
    (2.0, 8.0)
    >>> round(distinct_experts(8, 2, 4), 2)
    5.47
    >>> round(distinct_experts(256, 8, 64), 1)
    172.5
    """
    if num_experts <= EVEN_UP_TO:
        missed: float = (1 - experts_per_token / num_experts) ** tokens
        return num_experts * (1 - missed)
    chosen = experts_per_token * tokens
    return num_experts * chosen / (num_experts + chosen - experts_per_token)
