"""What a benchmark's client prints, from the times at which tokens came."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.accuracy.client import Timings


def client_metrics(
    timings: Timings, lengths: Sequence[tuple[int, int]], replicas: int, skip: int = 0
) -> dict[str, float]:
    """What the client prints; the latencies of the first ``skip`` requests are left out."""
    rates = _rates(timings.elapsed_s, lengths, replicas)
    skip = skip if skip < len(lengths) else 0
    return rates | _latencies(timings, lengths, skip)


def _rates(elapsed_s: float, lengths: Sequence[tuple[int, int]], replicas: int) -> dict[str, float]:
    out = sum(output for _, output in lengths)
    return {
        "output_tok_s": replicas * out / elapsed_s,
        "total_tok_s": replicas * (out + sum(prompt for prompt, _ in lengths)) / elapsed_s,
        "req_s": replicas * len(lengths) / elapsed_s,
    }


def _latencies(timings: Timings, lengths: Sequence[tuple[int, int]], skip: int) -> dict[str, float]:
    answers = list(zip(timings.sent_s, timings.first_s, timings.finish_s, lengths, strict=True))[
        skip:
    ]
    ttft = sorted(first - sent for sent, first, _, _ in answers)
    metrics = {
        "e2e_mean_ms": 1e3 * mean([finish - sent for sent, _, finish, _ in answers]),
        "ttft_mean_ms": 1e3 * mean(ttft),
        "ttft_p50_ms": 1e3 * quantile(ttft, 0.5),
        "ttft_p99_ms": 1e3 * quantile(ttft, 0.99),
    }
    decoding = [
        (finish - first, output - 1) for _, first, finish, (_, output) in answers if output > 1
    ]
    if decoding:
        tpot = sorted(seconds / tokens for seconds, tokens in decoding)
        gaps = sum(tokens for _, tokens in decoding)
        metrics |= {
            "tpot_mean_ms": 1e3 * mean(tpot),
            "tpot_p50_ms": 1e3 * quantile(tpot, 0.5),
            "tpot_p99_ms": 1e3 * quantile(tpot, 0.99),
            "itl_mean_ms": 1e3 * sum(seconds for seconds, _ in decoding) / gaps,
        }
    return metrics


def static_metrics(
    timings: Timings, lengths: Sequence[tuple[int, int]], replicas: int
) -> dict[str, float]:
    """Of a fixed batch: the time until all prompts are computed, and the steps after it."""
    end, start = max(timings.finish_s), max(timings.first_s)
    steps = max(output for _, output in lengths) - 1
    metrics = _rates(end, lengths, replicas) | {
        "e2e_mean_ms": 1e3 * end,
        "ttft_mean_ms": 1e3 * start,
        "ttft_p50_ms": 1e3 * start,
    }
    if steps:
        tpot = 1e3 * (end - start) / steps
        metrics |= {"tpot_mean_ms": tpot, "tpot_p50_ms": tpot, "itl_mean_ms": tpot}
    return metrics


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Of sorted values, straight between neighbours (as numpy does, and benchmark tools)."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
