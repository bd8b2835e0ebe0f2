"""Mixture-of-experts arithmetic."""

from __future__ import annotations

from capplan.formulas.order import expected_largest

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


def fullest_rank(
    num_experts: int, experts_per_token: int, tokens: float, ranks: int
) -> tuple[float, float]:
    """Experts touched on, and rows routed to, the expert-parallel rank that has most of each.

    All ranks wait for it. Which experts a rank has is chance, so both are taken as normal over
    ranks and the largest of ``ranks`` draws is expected (`expected_largest`). A rank's experts are
    touched or not (binomial, without replacement); rows vary with the draw of the tokens, and with
    how popular a rank's experts are, whose spread is that of `distinct_experts`: standard deviation
    k/E, as large as the mean, and none among few large experts.

    >>> [round(x, 1) for x in fullest_rank(8, 2, 100.0, 1)]
    [8.0, 200.0]
    >>> [round(x, 1) for x in fullest_rank(128, 4, 16.0, 8)]
    [8.0, 12.6]
    >>> [round(x / 8192, 3) for x in fullest_rank(256, 8, 8192.0, 8)][1]
    1.236
    """
    touched = distinct_experts(num_experts, experts_per_token, tokens) / ranks
    rows = experts_per_token * tokens / ranks
    if ranks == 1:
        return touched, rows
    mine = num_experts / ranks
    share, others = touched / mine, 1 - 1 / ranks
    draws = expected_largest(ranks)
    most: float = touched + draws * (mine * share * (1 - share) * others) ** 0.5
    # The smaller of two, so that arrays pass as well.
    most = (most + mine - abs(most - mine)) / 2
    unpopular = 0.0 if num_experts <= EVEN_UP_TO else rows**2 / mine
    return most, rows + draws * ((rows + unpopular) * others) ** 0.5
