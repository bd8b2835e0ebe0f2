"""How often enough of a fleet is up, and the spares that a target asks for."""

from __future__ import annotations

from math import comb


def availability(mtbf_s: float, mttr_s: float) -> float:
    """Of one part in the long run: MTBF / (MTBF + MTTR).

    Source: Trivedi and Bobbio, Reliability and Availability Engineering (2017), section 9.2.

    >>> availability(99.0, 1.0)
    0.99
    """
    return mtbf_s / (mtbf_s + mttr_s)


def k_of_n_availability(needed: int, num: int, each: float) -> float:
    """The share of time in which at least ``needed`` of ``num`` independent parts are up.

    The sum over j = 0 .. num - needed of C(num, j) (1 - each)^j each^(num - j). Source: Trivedi
    and Bobbio (2017), section 4.4, the k-out-of-n system.

    >>> round(k_of_n_availability(2, 3, 0.9), 3)  # 0.9^3 + 3 x 0.1 x 0.9^2
    0.972
    """
    down = 1.0 - each
    return sum(comb(num, j) * down**j * each ** (num - j) for j in range(num - needed + 1))


def spares_for(needed: int, each: float, target: float, most: int) -> int:
    """The fewest spares with which the target is kept, at most ``most``.

    >>> spares_for(2, 0.9, 0.97, 10)
    1
    """
    for spares in range(most):
        if k_of_n_availability(needed, needed + spares, each) >= target:
            return spares
    return most
