"""Where an increasing function crosses zero."""

from __future__ import annotations

from collections.abc import Callable

_MOST_STEPS = 100
_WIDTH = 4e-15  # of the bracket, relative to where it lies


def crossing(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The ends of a narrow bracket: at the lower the function is at most 0, at the upper above.

    At ``low`` it is taken to be at most 0, at ``high`` above. Inverse quadratic interpolation
    where the last three points allow it, bisection elsewhere (Chandrupatla, Advances in
    Engineering Software 28, 1997): kinks cost no more than bisection does.

    >>> low, high = crossing(lambda x: x**3 - 8, 0.0, 10.0)
    >>> low <= 2.0 <= high, round(low, 12)
    (True, 2.0)
    """
    # The newest point, the one across from it, and the one before.
    new, across, old = high, low, high
    at_new, at_across, at_old = function(high), function(low), 0.0
    part = 0.5
    for _ in range(_MOST_STEPS):
        point = new + part * (across - new)
        value = function(point)
        if (value > 0) == (at_new > 0):
            old, at_old = new, at_new
        else:
            old, across, at_old, at_across = across, new, at_across, at_new
        new, at_new = point, value
        width = abs(across - new)
        least = _WIDTH * abs(new) / 2
        if width <= 2 * least or not width:
            break
        part = 0.5
        xi = (new - across) / (old - across)
        phi = (at_new - at_across) / (at_old - at_across) if at_old != at_across else 0.0
        if phi * phi < xi and (1 - phi) ** 2 < 1 - xi:
            part = at_new / (at_across - at_new) * at_old / (at_across - at_old) + (old - new) / (
                across - new
            ) * at_new / (at_old - at_new) * at_across / (at_old - at_across)
        # No nearer to an end than the bracket is to be wide.
        part = min(max(part, least / width), 1 - least / width)
    return (across, new) if at_new > 0 else (new, across)
