"""The same load as the client's, on the settings of the run: what the client would measure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from capplan.accuracy.load import Load
from capplan.accuracy.quick_loop import LoopRules, Timings, run_loop
from capplan.accuracy.server import Server
from capplan.accuracy.settings import RunSettings
from capplan.accuracy.step_record import StepRecord

# Share of the output for which an engine without reservation keeps room: requests in the pool are
# on average half way, and a full pool holds them back before it preempts.
_GROWING_SHARE = 0.6
# An open loop at a steady rate is simulated for so many requests at most; longer runs of
# benchmarks repeat the same statistics (docs/accuracy.md has the effect).
_MOST_OPEN_REQUESTS = 4000
_MOST_BURST_REQUESTS = 30_000


@dataclass(frozen=True)
class Measured:
    """What a client would print; by the columns of the table."""

    metrics: dict[str, float]
    busy_decode_share: float
    num_requests: int


def emulate(
    settings: RunSettings, load: Load, server: Server, record: StepRecord | None = None
) -> Measured:
    """One row through the loop; ``record`` collects its steps (of one replica)."""
    replicas = settings.num_replicas
    share = _of_replica(load, replicas)
    lengths, timings = _run(settings, share, server, record)
    if 0 < timings.elapsed_s < share.least_duration_s and load.kind == "burst":
        # The benchmark goes on; so many requests that its ramps weigh what they weigh there.
        longer = math.ceil(share.num_requests * share.least_duration_s / timings.elapsed_s)
        share = replace(share, num_requests=min(longer, _MOST_BURST_REQUESTS))
        lengths, timings = _run(settings, share, server, record)
    metrics = _metrics(timings, lengths, replicas)
    if load.kind == "static":
        metrics = _static_metrics(timings, lengths, replicas)
    return Measured(metrics, timings.decode_share_of_time, len(lengths) * replicas)


def _run(
    settings: RunSettings, load: Load, server: Server, record: StepRecord | None
) -> tuple[list[tuple[int, int]], Timings]:
    lengths = load.lengths()
    if record is not None:
        record.bins.clear()
    timings = run_loop(
        server.steps,
        loop_rules(settings, server, lengths),
        lengths,
        _arrivals(load),
        load.concurrency,
        0.0 if load.kind == "static" else server.front_end_s(load.mean_prompt_tokens),
        record,
    )
    return lengths, timings


def _of_replica(load: Load, replicas: int) -> Load:
    """The load of one of several replicas: clients and rates are shared out evenly."""
    num = max(1, math.ceil(load.num_requests / replicas))
    rate = load.rate_per_s / replicas
    if load.kind in ("poisson", "constant-rate"):
        num = min(num, _MOST_OPEN_REQUESTS)
    concurrency = math.ceil(load.concurrency / replicas) if load.concurrency else 0
    return replace(load, num_requests=num, rate_per_s=rate, concurrency=concurrency)


def _arrivals(load: Load) -> list[float] | None:
    if load.kind == "closed":
        return None
    if load.kind in ("burst", "static"):
        return [0.0] * load.num_requests
    if load.kind == "constant-rate":
        return [index / load.rate_per_s for index in range(load.num_requests)]
    rng, now, times = random.Random("0 arrivals"), 0.0, []
    for _ in range(load.num_requests):
        times.append(now)
        now += rng.expovariate(load.rate_per_s)
    return times


def loop_rules(
    settings: RunSettings, server: Server, lengths: Sequence[tuple[int, int]]
) -> LoopRules:
    """The engine's scheduler in the loop's terms."""
    scheduler = settings.engine.scheduler
    mixes = scheduler in ("vllm-v1", "tensorrt-llm") or (
        scheduler == "vllm-v0" and settings.chunked_prefill
    )
    reserves = scheduler == "tensorrt-llm"
    mean = sum(prompt + output for prompt, output in lengths) / len(lengths)
    longest = max(prompt + output for prompt, output in lengths)
    kv_tokens, _ = server.kv_tokens(mean, longest)
    copies = settings.dp * settings.pp  # each works on a batch of its own
    wait = settings.batch_wait_timeout_iters
    return LoopRules(
        mixes=mixes,
        chunks=scheduler == "sglang" or settings.chunked_prefill,
        max_num_seqs=settings.max_num_seqs * copies,
        max_num_batched_tokens=settings.max_num_batched_tokens * copies,
        kv_tokens=kv_tokens,
        reserve_output_share=1.0 if reserves else _GROWING_SHARE,
        recv_interval=settings.scheduler_recv_interval,
        wait_iters=wait,
        wait_tokens=settings.batch_wait_max_tokens_ratio * settings.max_num_batched_tokens,
    )


def _metrics(
    timings: Timings, lengths: Sequence[tuple[int, int]], replicas: int
) -> dict[str, float]:
    ttft = [first - sent for first, sent in zip(timings.first_s, timings.sent_s, strict=True)]
    e2e = [finish - sent for finish, sent in zip(timings.finish_s, timings.sent_s, strict=True)]
    decoding = [
        (finish - first, output - 1)
        for finish, first, (_, output) in zip(
            timings.finish_s, timings.first_s, lengths, strict=True
        )
        if output > 1
    ]
    elapsed = timings.elapsed_s
    out = sum(output for _, output in lengths)
    metrics = {
        "output_tok_s": replicas * out / elapsed,
        "total_tok_s": replicas * (out + sum(prompt for prompt, _ in lengths)) / elapsed,
        "req_s": replicas * len(lengths) / elapsed,
        "e2e_mean_ms": 1e3 * _mean(e2e),
    }
    ttft.sort()
    metrics |= {
        "ttft_mean_ms": 1e3 * _mean(ttft),
        "ttft_p50_ms": 1e3 * quantile(ttft, 0.5),
        "ttft_p99_ms": 1e3 * quantile(ttft, 0.99),
    }
    if decoding:
        tpot = sorted(seconds / tokens for seconds, tokens in decoding)
        gaps = sum(tokens for _, tokens in decoding)
        metrics |= {
            "tpot_mean_ms": 1e3 * _mean(tpot),
            "tpot_p50_ms": 1e3 * quantile(tpot, 0.5),
            "tpot_p99_ms": 1e3 * quantile(tpot, 0.99),
            "itl_mean_ms": 1e3 * sum(seconds for seconds, _ in decoding) / gaps,
        }
    return metrics


def _static_metrics(
    timings: Timings, lengths: Sequence[tuple[int, int]], replicas: int
) -> dict[str, float]:
    """Of a fixed batch: the time until all prompts are computed, and the steps after it."""
    end, start = max(timings.finish_s), max(timings.first_s)
    out = sum(output for _, output in lengths)
    steps = max(output for _, output in lengths) - 1
    metrics = {
        "output_tok_s": replicas * out / end,
        "total_tok_s": replicas * (out + sum(prompt for prompt, _ in lengths)) / end,
        "req_s": replicas * len(lengths) / end,
        "e2e_mean_ms": 1e3 * end,
        "ttft_mean_ms": 1e3 * start,
        "ttft_p50_ms": 1e3 * start,
    }
    if steps:
        tpot = 1e3 * (end - start) / steps
        metrics |= {"tpot_mean_ms": tpot, "tpot_p50_ms": tpot, "itl_mean_ms": tpot}
    return metrics


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Of sorted values, straight between neighbours (as numpy does, and benchmark tools)."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
