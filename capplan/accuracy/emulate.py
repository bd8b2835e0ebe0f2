"""The same load as the client's, on the settings of the run: what the client would measure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from capplan.accuracy.benchmarks.mlperf import LatencyLimits, highest_rate
from capplan.accuracy.client import Client, Timings
from capplan.accuracy.client_metrics import client_metrics, mean, static_metrics
from capplan.accuracy.load import Load
from capplan.accuracy.scheduler import make_loop
from capplan.accuracy.server import Server
from capplan.accuracy.settings import RunSettings
from capplan.accuracy.step_record import StepRecord
from capplan.accuracy.utilisation import capacity_per_s, held_requests

# Of a benchmark that goes on for a time: a bound that no row of the table reaches.
_MOST_BURST_REQUESTS = 30_000
# Requests of a run within limits: generations of the batch, of which the first fills it.
_LIMITED_GENERATIONS, _LEAST_LIMITED, _MOST_LIMITED = 10, 2000, 12_000
_OPEN = ("poisson", "constant-rate")
_FEW_REQUESTS = 500


@dataclass(frozen=True)
class Emulated:
    """What a client would print; by the columns of the table."""

    metrics: dict[str, float]
    num_requests: int
    kv_note: str | None  # where the estimate of the pool would not have let it run


def emulate(
    settings: RunSettings, load: Load, server: Server, record: StepRecord | None = None
) -> Emulated:
    """One row through the loop; ``record`` collects its steps (of one replica)."""
    replicas = settings.num_replicas
    share = of_replica(load, replicas)
    if load.limits is not None:
        share = _at_limits(settings, share, load.limits, server)
    if record is None and share.num_requests <= _FEW_REQUESTS and load.kind in _OPEN:
        return _mean_of_seeds(settings, share, server)
    lengths, timings = _run(settings, share, server, record)
    if 0 < timings.elapsed_s < share.least_duration_s and load.kind == "burst":
        # The benchmark goes on; so many requests that its ramps weigh what they weigh there.
        longer = math.ceil(share.num_requests * share.least_duration_s / timings.elapsed_s)
        share = replace(share, num_requests=min(longer, _MOST_BURST_REQUESTS))
        lengths, timings = _run(settings, share, server, record)
    if load.kind == "static":
        metrics = static_metrics(timings, lengths, replicas)
    else:
        skip = math.ceil(load.steady_from / replicas)
        metrics = client_metrics(timings, lengths, replicas, skip)
    return Emulated(metrics, len(lengths) * replicas, _pool(server, lengths)[1])


def _at_limits(settings: RunSettings, share: Load, limits: LatencyLimits, server: Server) -> Load:
    """The load of one replica at the highest rate that keeps the limits."""
    generations = math.ceil(_LIMITED_GENERATIONS * held_requests(settings, share, server))
    num = max(_LEAST_LIMITED, min(generations, _MOST_LIMITED))

    def at(rate_per_s: float) -> Load:
        whole = round(share.least_duration_s * rate_per_s)
        return replace(share, rate_per_s=rate_per_s, num_requests=max(1, min(num, whole)))

    def passes(rate_per_s: float) -> bool:
        lengths, timings = _run(settings, at(rate_per_s), server, None)
        return limits.met_by(client_metrics(timings, lengths, 1))

    return at(highest_rate(capacity_per_s(settings, share, server), passes))


def _mean_of_seeds(settings: RunSettings, share: Load, server: Server) -> Emulated:
    """A short open loop is one draw of many: the mean of several is nearer to any other."""
    runs = []
    for seed in range(share.num_draws):
        lengths, timings = _run(settings, share, server, None, seed)
        runs.append(client_metrics(timings, lengths, settings.num_replicas))
    # A draw whose answers all end with their first token has no TPOT.
    names = dict.fromkeys(name for run in runs for name in run)
    metrics = {name: mean([run[name] for run in runs if name in run]) for name in names}
    note = _pool(server, share.lengths())[1]
    return Emulated(metrics, share.num_requests * settings.num_replicas, note)


def _pool(server: Server, lengths: Sequence[tuple[int, int]]) -> tuple[float, str | None]:
    """Tokens that the KV pool holds in requests of these lengths."""
    mean = sum(prompt + output for prompt, output in lengths) / len(lengths)
    return server.kv_tokens(mean, max(prompt + output for prompt, output in lengths))


def _run(
    settings: RunSettings,
    load: Load,
    server: Server,
    record: StepRecord | None,
    seed: int = 0,
) -> tuple[list[tuple[int, int]], Timings]:
    lengths = load.lengths(seed)
    kv_tokens, _ = _pool(server, lengths)
    front_end_s = 0.0 if load.kind == "static" else server.front_end_s(load.mean_prompt_tokens)
    client = Client(lengths, front_end_s, server.intake_s if load.by_http else 0.0)
    steps = server.steps if record is None else record.watched(server.steps)
    warm = load.finds_prompts and settings.engine.scheduler in ("vllm-v1", "sglang")
    loop = make_loop(settings, steps, kv_tokens, lengths, client.finished, record, cached=warm)
    start = client.warm_up(loop) if warm else 0.0
    if load.kind == "closed":
        timings = client.run_closed(loop, load.concurrency)
    else:
        timings = client.run_open(loop, [start + when for when in send_times(load, seed)])
    if record is not None:
        record.weigh(timings, lengths)
    return lengths, timings


def of_replica(load: Load, replicas: int) -> Load:
    """The load of one of several replicas: clients and rates are shared out evenly.

    MLPerf's harnesses give a request to the replica with the fewest (NVIDIA's `load_balancing`), so
    that each sees about every n-th arrival: far fewer at once than of a stream of its own.
    """
    num = max(1, math.ceil(load.num_requests / replicas))
    rate = load.rate_per_s / replicas
    concurrency = math.ceil(load.concurrency / replicas) if load.concurrency else 0
    arrivals = load.arrivals if replicas == 1 else None
    dealt = replicas if load.limits is not None else 1
    return replace(
        load,
        num_requests=num,
        rate_per_s=rate,
        concurrency=concurrency,
        arrivals=arrivals,
        dealt=dealt,
    )


def send_times(load: Load, seed: int) -> list[float]:
    """When requests are sent, in s from the start."""
    if load.kind == "constant-rate":
        return [index / load.rate_per_s for index in range(load.num_requests)]
    if load.kind != "poisson":
        return [0.0] * load.num_requests
    if load.arrivals is not None:
        return load.arrivals(seed)
    rng, now, times = random.Random(f"{seed} arrivals"), 0.0, []
    for _ in range(load.num_requests):
        times.append(now)
        now += sum(rng.expovariate(load.rate_per_s * load.dealt) for _ in range(load.dealt))
    return times
