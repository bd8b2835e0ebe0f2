"""Means of distributions that are cut at a limit (limited expected values)."""

from __future__ import annotations

import math
from statistics import NormalDist

_STANDARD = NormalDist()


def lognormal_parameters(mean: float, cv: float) -> tuple[float, float]:
    """(mu, sigma) of the logarithm of a lognormal variable with this mean and CV.

    sigma^2 = ln(1 + cv^2), mu = ln(mean) - sigma^2 / 2. Source: Johnson, Kotz, Balakrishnan,
    Continuous Univariate Distributions, vol. 1 (1994), 14.3.
    """
    sigma = math.sqrt(math.log1p(cv * cv))
    return math.log(mean) - sigma * sigma / 2, sigma


def lognormal_limited_mean(mean: float, cv: float, limit: float) -> float:
    """E[min(X, limit)] of a lognormal X, limit > 0.

    mean Phi((ln limit - mu - sigma^2) / sigma) + limit (1 - Phi((ln limit - mu) / sigma)).
    Source: Klugman, Panjer, Willmot, Loss Models (4th ed., 2012), appendix A.4.1.1.
    """
    mu, sigma = lognormal_parameters(mean, cv)
    z = (math.log(limit) - mu) / sigma
    return mean * _STANDARD.cdf(z - sigma) + limit * _STANDARD.cdf(-z)


def normal_limited_mean(mean: float, deviation: float, limit: float) -> float:
    """E[min(X, limit)] of a normal X.

    limit - (limit - mean) Phi(z) - deviation phi(z), z = (limit - mean) / deviation: the mean of
    what exceeds the limit is taken off. Source: Klugman et al., section 3.1, with the normal
    density integrated.
    """
    z = (limit - mean) / deviation
    return limit - (limit - mean) * _STANDARD.cdf(z) - deviation * _STANDARD.pdf(z)


def uniform_limited_mean(low: float, high: float, limit: float) -> float:
    """E[min(X, limit)] of X uniform on [low, high]: X below the limit, the limit above it."""
    if limit <= low:
        return limit
    if limit >= high:
        return (low + high) / 2
    return (limit * (high - limit) + (limit * limit - low * low) / 2) / (high - low)
