"""How near to its limit a run was: offered load over what the server can carry."""

from __future__ import annotations

import math
from dataclasses import replace

from capplan.accuracy.client import Client
from capplan.accuracy.load import Load
from capplan.accuracy.scheduler import make_loop
from capplan.accuracy.server import Server
from capplan.accuracy.settings import RunSettings

_LEAST_REQUESTS, _MOST_REQUESTS = 400, 2000


def utilisation(settings: RunSettings, load: Load, server: Server) -> float:
    """Of an open loop its rate over the capacity; of a closed one its clients over the requests
    that slots and KV hold; 1 where everything is sent at once; 0 for a fixed batch."""
    if load.kind == "static":
        return 0.0
    if load.kind == "burst":
        return 1.0
    if load.kind == "closed":
        clients = math.ceil(load.concurrency / settings.num_replicas)
        tokens = load.mean_prompt_tokens + load.mean_output_tokens
        kv_tokens, _ = server.kv_tokens(tokens, math.ceil(tokens))
        slots = settings.max_num_seqs * settings.dp * settings.pp
        return clients / max(1.0, min(slots, kv_tokens / tokens))
    return load.rate_per_s / (settings.num_replicas * capacity_per_s(settings, load, server))


def capacity_per_s(settings: RunSettings, load: Load, server: Server) -> float:
    """Requests a second of one replica that never waits for work: the middle of a burst."""
    num = max(_LEAST_REQUESTS, min(load.num_requests, _MOST_REQUESTS))
    lengths = replace(load, num_requests=num).lengths()
    longest = max(prompt + output for prompt, output in lengths)
    mean = load.mean_prompt_tokens + load.mean_output_tokens
    kv_tokens, _ = server.kv_tokens(mean, longest)
    client = Client(lengths, 0.0)
    loop = make_loop(settings, server.steps, kv_tokens, lengths, client.finished)
    finish = sorted(client.run_open(loop, [0.0] * num).finish_s)
    first, last = num // 5, 4 * num // 5
    spent = finish[last] - finish[first]
    return (last - first) / spent if spent > 0 else num / finish[-1]
