"""Small random scenarios over every option of the scheduler, in the form of scenario files."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
TICK_S = 2.0**-20
DYADIC = {"a": 2.0**-7, "b": 2.0**-16, "c": 2.0**-24}


def scenario(seed: int) -> Json:
    rng = random.Random(seed)
    block_size = rng.choice([1, 2, 3, 4, 8, 16, 32])
    longest = rng.choice([12, 40, 120, 400])
    budget = rng.choice([3, 8, 16, 33, 64, 256, 1024])
    cap = rng.choice([1, 2, 4, 8, 20, 64, 64])
    chunked = rng.random() < 0.85
    threshold = rng.choice([0, 0, 0, 1, 4, 9, 30])
    config = {
        "block_size": block_size,
        "num_gpu_blocks": 0,
        "max_num_seqs": cap,
        "max_num_batched_tokens": budget,
        "max_model_len": rng.choice([longest + 1, longest * 2, 4096]),
        "enable_chunked_prefill": chunked,
        "long_prefill_token_threshold": threshold,
        "long_prefill_token_threshold_adaptive": threshold > 0 and rng.random() < 0.3,
        "enable_prefix_caching": rng.random() < 0.6,
        "policy": rng.choice(["fcfs", "fcfs", "priority"]),
        "watermark": rng.choice([0.0, 0.0, 0.0, 0.05, 0.29]),
        "scheduler_reserve_full_isl": rng.random() < 0.6,
        "max_num_active_seqs": rng.choice([None, None, None, 1, 2, 4]),
        "prefill_schedule_interval": rng.choice([1, 1, 1, 2, 5]),
    }
    requests = _requests(rng, longest, config["max_model_len"])
    largest = max(-(-(r["prompt_len"] + r["output_len"]) // block_size) for r in requests)
    room = rng.choice([0.9, 1.0, 1.0, 1.2, 1.5, 1.5, 2, 2, 3, 6, 30])
    config["num_gpu_blocks"] = max(2, int(largest * room)) + 1
    result: Json = {
        "name": f"random_{seed}",
        "mode": rng.choice(["sync", "async"]),
        "config": config,
        "step_time": dict(DYADIC),
        "requests": requests,
    }
    if rng.random() < 0.3:  # sums must then be made in the same order as well
        result["step_time"] = {"a": 0.0071, "b": 1.3e-5, "c": 7.1e-8}
    return result


def _requests(rng: random.Random, longest: int, max_model_len: int) -> list[Json]:
    clock, rate = 0.0, rng.choice([0.0, 0.002, 0.01, 0.03, 0.2])
    streams = [f"s{i}" for i in range(rng.randint(1, 3))]
    shared, stops = rng.random() < 0.7, rng.random() < 0.4
    requests: list[Json] = []
    for index in range(rng.choice([2, 4, 8, 16, 30])):
        if rng.random() < 0.8:
            clock += round(rng.expovariate(1.0) * rate / TICK_S) * TICK_S
        prompt = rng.randint(1, max(1, int(longest * rng.choice([0.1, 0.3, 0.6]))))
        output = rng.randint(1, max(1, min(longest // 2, rng.choice([2, 20, 60, 200, 200]))))
        entry: Json = {"id": f"r{index:02d}", "arrival_s": clock}
        kind = rng.random() if shared else 1.0
        if kind < 0.25:
            entry |= {"prefix_id": rng.choice(streams), "prefix_len": rng.randint(1, prompt)}
        elif kind < 0.4:
            chain = [[rng.choice(streams), rng.randint(1, 20)] for _ in range(rng.randint(1, 3))]
            entry["prefix_chain"] = chain
        elif kind < 0.6 and requests:
            parent = rng.choice(requests[-5:])
            entry["parent"] = parent["id"]
            prompt = parent["prompt_len"] + parent["output_len"] + rng.randint(-3, 10)
        prompt = max(1, min(prompt, max_model_len - 1, longest))
        entry |= {"prompt_len": prompt, "output_len": output}
        if rng.random() < 0.5:
            entry["priority"] = rng.randint(0, 2)
        if stops and rng.random() < 0.6:
            entry["max_tokens"] = output + rng.randint(0, 4)
        requests.append(entry)
    return requests
