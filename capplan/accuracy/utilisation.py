"""How near to its limit a run was: offered load over what the server can carry."""

from __future__ import annotations

import math
from dataclasses import replace

from capplan.accuracy.client import Client
from capplan.accuracy.load import Load
from capplan.accuracy.scheduler import make_loop
from capplan.accuracy.server import Server, server_of
from capplan.accuracy.settings import RunSettings
from capplan.performance.bands import BandKey, band_key
from capplan.performance.calibration import UNCALIBRATED, Calibration

# Of the burst by which a capacity is measured: so many generations of the batch, within limits.
_GENERATIONS = 6
_LEAST_REQUESTS, _MOST_REQUESTS = 400, 10_000


def band_key_of(
    settings: RunSettings, load: Load, calibration: Calibration = UNCALIBRATED
) -> BandKey:
    """The kind of measured rows that a run is like."""
    used = 1.0  # a rate that was raised until limits were met is as high as it can be
    if load.limits is None:
        used = utilisation(settings, load, server_of(settings, calibration))
    gpus = settings.tp * settings.pp * settings.dp
    return band_key(settings.model, settings.hardware, settings.engine.scheduler, gpus, used)


def utilisation(settings: RunSettings, load: Load, server: Server) -> float:
    """Of an open loop its rate over the capacity; of a closed one its clients over the requests
    that slots and KV hold; 1 where everything is sent at once; 0 for a fixed batch."""
    if load.kind == "static":
        return 0.0
    if load.kind == "burst":
        return 1.0
    if load.kind == "closed":
        clients = math.ceil(load.concurrency / settings.num_replicas)
        return clients / held_requests(settings, load, server)
    return load.rate_per_s / (settings.num_replicas * capacity_per_s(settings, load, server))


def held_requests(settings: RunSettings, load: Load, server: Server) -> float:
    """Requests that slots and KV of one replica hold at once; at least one."""
    tokens = load.mean_prompt_tokens + load.mean_output_tokens
    kv_tokens, _ = server.kv_tokens(tokens, math.ceil(tokens))
    slots = settings.max_num_seqs * settings.dp * settings.pp
    return max(1.0, min(slots, kv_tokens / tokens))


def capacity_per_s(settings: RunSettings, load: Load, server: Server) -> float:
    """Requests a second of one replica that never waits for work: the middle of a burst."""
    wanted = math.ceil(_GENERATIONS * held_requests(settings, load, server))
    num = max(_LEAST_REQUESTS, min(wanted, _MOST_REQUESTS))
    lengths = replace(load, num_requests=num).lengths()
    longest = max(prompt + output for prompt, output in lengths)
    mean = load.mean_prompt_tokens + load.mean_output_tokens
    kv_tokens, _ = server.kv_tokens(mean, longest)
    client = Client(lengths, 0.0)
    loop = make_loop(settings, server.steps, kv_tokens, lengths, client.finished)
    finish = sorted(client.run_open(loop, [0.0] * num).finish_s)
    first, last = num // 3, 5 * num // 6
    spent = finish[last] - finish[first]
    return (last - first) / spent if spent > 0 else num / finish[-1]
