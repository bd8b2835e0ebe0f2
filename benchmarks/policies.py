"""How fast the loop of `simulator.policies` is, beside the exact core, in one run.

    python benchmarks/policies.py

Closed loops of 512 users (1,024 in, 1,024 out, within 20 %) and an open stream; CPU seconds of
this process. The last column is the ratio to the exact core on the same traffic.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from math import inf

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import ChunkedPrefill, Orca, PrefillFirst
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.step_time import AffineStepTime

STEP_TIME = AffineStepTime(2.0**-7, 2.0**-16, 2.0**-26)
TOKENS, USERS = 2_000_000, 512
Make = Callable[[Callable[[RequestRecord], object]], ReplicaLoop]


def _loop(block_size: int = 16, **more: object) -> LoopConfig:
    return LoopConfig(
        TOKENS // block_size, block_size, USERS, 16384, 4096, async_scheduling=True, **more
    )  # type: ignore[arg-type]


SCHEDULERS: dict[str, Make] = {
    "exact core (vLLM V1)": lambda done: Replica(
        SchedulerConfig(
            TOKENS // 16, max_num_seqs=USERS, max_num_batched_tokens=16384, max_model_len=4096,
            enable_prefix_caching=False,
        ), STEP_TIME, done,
    ),
    "chunked prefill": lambda done: PolicyReplica(_loop(), ChunkedPrefill(), STEP_TIME, done),
    "whole prompts": lambda done: PolicyReplica(_loop(), Orca(), STEP_TIME, done),
    "prefill first": lambda done: PolicyReplica(_loop(), PrefillFirst(), STEP_TIME, done),
    "TensorRT-LLM, batch wait": lambda done: PolicyReplica(
        _loop(32, kv_allocation="max_tokens"),
        TensorRtLlm(batch_wait_timeout_iters=20, batch_wait_max_tokens_ratio=0.9), STEP_TIME, done,
    ),
    "SGLang, receive interval 10": lambda done: PolicyReplica(
        _loop(1), Sglang(scheduler_recv_interval=10, ignore_eos=True), STEP_TIME, done
    ),
}  # fmt: skip


def closed_loop(make: Make) -> tuple[int, float]:
    """Each user sends again when his answer is there."""
    rng, records = random.Random(3), list[RequestRecord]()
    loop = make(records.append)

    def send(number: int, at_s: float) -> None:
        prompt, output = rng.randint(819, 1024), rng.randint(819, 1024)
        assert loop.submit(Request(str(number), at_s, prompt, output)) is None

    begin = time.process_time()
    for number in range(USERS):
        send(number, 0.0)
    sent, seen = USERS, 0
    while loop.next_s < inf:
        loop.advance(inf)
        for record in records[seen:]:
            if sent < 10 * USERS:
                send(sent, record.finish_s)
                sent += 1
        seen = len(records)
    return len(records), time.process_time() - begin


def open_stream(make: Make) -> tuple[int, float]:
    """16 requests/s of about 1,024 in and 256 out."""
    rng, clock, records = random.Random(1), 0.0, list[RequestRecord]()
    loop = make(records.append)
    begin = time.process_time()
    for number in range(10_000):
        clock += rng.expovariate(16.0)
        prompt, output = max(1, round(rng.gauss(1024, 200))), max(1, round(rng.gauss(256, 50)))
        loop.submit(Request(str(number), clock, prompt, output))
    while loop.next_s < inf:
        loop.advance(inf)
    return len(records), time.process_time() - begin


def main() -> None:
    for title, traffic in (("closed loop", closed_loop), ("open stream", open_stream)):
        print(f"{title:28} {'requests':>9} {'CPU s':>7} {'requests/s':>11} {'x core':>7}")
        core: float | None = None
        for name, make in SCHEDULERS.items():
            number, seconds = min((traffic(make) for _ in range(3)), key=lambda found: found[1])
            core = core or seconds
            rate = round(number / seconds)
            print(f"  {name:26} {number:9,} {seconds:7.2f} {rate:11,} {seconds / core:7.2f}")


if __name__ == "__main__":
    main()
