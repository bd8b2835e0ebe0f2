"""Where a curve bends: how far it pays to go on."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_BEND = 0.15  # of the height of the plot, below the chord


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other beats in both: more gain and less cost (Pareto).

    In rising order of gain; of equal points the first counts.

    >>> frontier([(1.0, 1.0), (2.0, 2.0), (1.5, 3.0), (2.0, 2.5)])
    [0, 1]
    """
    found: list[int] = []
    least = math.inf
    for i in sorted(range(len(points)), key=lambda i: (-points[i][0], points[i][1], i)):
        if points[i][1] < least:
            least = points[i][1]
            found.append(i)
    return found[::-1]


def knee(points: Sequence[tuple[float, float]]) -> int | None:
    """The point of a rising curve (gain, cost) that lies farthest below its chord.

    Kneedle for a discrete curve (Satopaa et al., "Finding a Kneedle in a Haystack", ICDCSW 2011):
    both axes are scaled to 0..1 and the largest difference is taken; of the cost, which spans
    orders of magnitude, the logarithm. None where there are fewer than three points, or nothing
    bends.

    >>> knee([(1, 1.0), (2, 1.05), (4, 1.2), (4.1, 4.0)])
    2
    """
    if len(points) < 3:
        return None
    gains = [gain for gain, _ in points]
    costs = [math.log(cost) for _, cost in points]
    width, height = gains[-1] - gains[0], costs[-1] - costs[0]
    if width <= 0 or height <= 0:
        return None
    below = [
        (gain - gains[0]) / width - (cost - costs[0]) / height
        for gain, cost in zip(gains, costs, strict=True)
    ]
    best = max(range(len(points)), key=lambda i: below[i])
    return best if below[best] >= LEAST_BEND else None
