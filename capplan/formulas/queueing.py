"""Requests in flight."""

from __future__ import annotations


def e2e_s(ttft_s: float, tpot_s: float, output_tokens: int) -> float:
    """End-to-end latency of a request, seconds: the first token, then output - 1 intervals.

    >>> round(e2e_s(0.4, 0.025, 256), 3)
    6.775
    """
    return ttft_s + (output_tokens - 1) * tpot_s


def concurrency(arrival_rate_per_s: float, sojourn_s: float) -> float:
    """Requests in the system: Little's law, L = lambda W (Little, Oper. Res. 9(3), 1961).

    >>> round(concurrency(100, 6.775), 1)
    677.5
    """
    return arrival_rate_per_s * sojourn_s
