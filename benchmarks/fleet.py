"""What the fleet around a replica costs, as ratios within one run.

    python benchmarks/fleet.py [NUM_REQUESTS]

The same traffic per replica (Poisson 20 requests/s, about 1,024 in and 256 out) by the scheduler
alone, by one replica behind the door of the fleet, and by several replicas under routers that
look at nothing, at loads, and with impatient clients; then a closed loop. CPU seconds.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.fleet.settings import Clients, FleetSettings, Routing
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.fleet.sources import ClosedLoop
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Request
from capplan.simulator.simulate import open_replica, simulate
from capplan.simulator.step_time import AffineStepTime

STEP = AffineStepTime(2.0**-7, 2.0**-16, 2.0**-24)
CONFIG = SchedulerConfig(num_gpu_blocks=30_000, max_num_seqs=512, enable_prefix_caching=False)
RATE_PER_S = 20.0


def traffic(number: int, rate_per_s: float) -> list[Request]:
    rng, clock, requests = random.Random(1), 0.0, []
    for index in range(number):
        clock += rng.expovariate(rate_per_s)
        prompt = min(4096, max(16, round(rng.gauss(1024, 256))))
        output = min(1024, max(8, round(rng.gauss(256, 64))))
        requests.append(Request(f"r{index}", clock, prompt, output))
    return requests


def make(on_finish: Callable[[Any], object]) -> ReplicaLoop:
    return open_replica(CONFIG, STEP, on_finish)


def cpu_s(run: Callable[[], object]) -> float:
    """The best of three."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def main(number: int) -> None:
    one = traffic(number, RATE_PER_S)
    alone_s = cpu_s(lambda: simulate(one, CONFIG, STEP))

    def row(label: str, run: Callable[[], object]) -> None:
        spent_s = cpu_s(run)
        print(f"{label:42s}{number / spent_s:12,.0f} requests/s{spent_s / alone_s:8.2f} x alone")

    print(f"{'the scheduler alone':42s}{number / alone_s:12,.0f} requests/s{1:8.2f} x")
    row("one replica in a fleet", lambda: simulate_fleet(one, make))
    for replicas in (4, 16):
        many = traffic(number, RATE_PER_S * replicas)
        for policy in ("round-robin", "random-of-two", "least-requests"):
            plan = FleetSettings(replicas, routing=Routing(policy))
            row(f"{replicas} replicas, {policy}", lambda m=many, p=plan: simulate_fleet(m, make, p))
    many = traffic(number, RATE_PER_S * 4)
    impatient = FleetSettings(4, Clients(timeout_s=10.0, retries=2))
    row("4 replicas, impatient clients", lambda: simulate_fleet(many, make, impatient))
    at_once = [request._replace(arrival_s=0.0) for request in one]
    for users in (32, 512):
        row(
            f"closed loop, {users} users",
            lambda u=users: simulate_fleet(ClosedLoop(at_once, u), make),
        )
    row("closed loop, 512 users, 4 replicas",
        lambda: simulate_fleet(ClosedLoop(at_once, 512), make, FleetSettings(4)))  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
