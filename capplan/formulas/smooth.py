"""Smooth combinations of times that overlap in part."""

from __future__ import annotations

TINY_S = 1e-30  # keeps 0 / 0 away; no kernel is as short


def smooth_max(first_s: float, second_s: float, norm: float) -> float:
    """The p-norm of two times: their sum at ``norm`` 1, close to the longer one at 4 and above.

    Compute and weight streaming of one kernel overlap, but not wholly: measured products follow
    the p-norm with p of 1.2 to 4 (docs/model.md). Scaled, so that no power underflows; plain
    arithmetic, so that arrays pass as well.

    >>> round(smooth_max(3.0, 4.0, 2.0), 9), smooth_max(3.0, 4.0, 1.0)
    (5.0, 7.0)
    """
    total = first_s + second_s + TINY_S
    share: float = ((first_s / total) ** norm + (second_s / total) ** norm) ** (1 / norm)
    return share * total
