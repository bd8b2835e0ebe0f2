"""The state of the replicas over time, at a resolution that follows the length of the run."""

from __future__ import annotations

from collections.abc import Iterable

from capplan.simulator.fleet.records import Sample
from capplan.simulator.fleet.server import Server, advance

FIRST_INTERVAL_S = 1 / 16
MOST_SAMPLES = 1024  # then every second one is dropped


class Sampler:
    """Keeps at most `MOST_SAMPLES` evenly spaced samples, whatever the length of the run."""

    def __init__(self) -> None:
        self.interval_s = FIRST_INTERVAL_S
        self.next_s = 0.0
        self.samples: list[Sample] = []

    def sample(self, servers: Iterable[Server]) -> None:
        """Note the state at `next_s`, to which the replicas are advanced."""
        advance(servers, self.next_s)
        loops = [server.loop if server.up else None for server in servers]
        sample = Sample(
            self.next_s,
            tuple([loop.num_running if loop else 0 for loop in loops]),
            tuple([loop.num_waiting if loop else 0 for loop in loops]),
            tuple([loop.num_used_blocks if loop else 0 for loop in loops]),
        )
        self.samples.append(sample)
        if len(self.samples) == MOST_SAMPLES:
            del self.samples[1::2]
            self.interval_s *= 2
        # Counted, not summed up: the times stay multiples of the interval.
        self.next_s = len(self.samples) * self.interval_s
