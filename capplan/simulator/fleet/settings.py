"""How clients, admission, router and failures behave: plain data, see `specs.clients` for plans."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Literal

from capplan.specs.clients import RouterPolicy

Trouble = Literal["timed out", "rejected", "failed"]


@dataclass(frozen=True, slots=True)
class Clients:
    """What a user does while an answer is late, and after a refusal.

    The timeout counts from the sending of each attempt. A user who gives up sends again, at most
    `retries` times. Exponential backoff with full jitter: uniform from 0 to min(`backoff_max_s`,
    `backoff_s` x 2^(attempt - 1)); without jitter that bound itself (M. Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog 2015).
    """

    timeout_s: float = inf
    timeout_on: Literal["ttft", "e2e"] = "ttft"
    retries: int = 0
    retry_on: tuple[Trouble, ...] = ("timed out", "rejected", "failed")
    backoff: Literal["none", "fixed", "exponential"] = "none"
    backoff_s: float = 1.0
    backoff_max_s: float = 60.0
    jitter: bool = True  # of exponential backoff
    # Does the engine learn that the client has gone? If not, it goes on to the last token.
    cancels: bool = True


@dataclass(frozen=True, slots=True)
class Admission:
    """When a replica answers 429 instead of taking a request in.

    The queue wait is estimated as requests waiting x the mean gap between the replica's last
    finishes since it last ran empty (Little's law with the rate seen lately); nothing is refused
    by it before two finishes were seen.
    """

    max_queue_depth: float = inf  # requests waiting at the replica
    max_queue_wait_s: float = inf
    max_concurrency: float = inf  # requests in the replica, waiting and running
    retry_after_s: float = 0.0  # sent along; a client waits at least as long

    @property
    def is_open(self) -> bool:
        return min(self.max_queue_depth, self.max_queue_wait_s, self.max_concurrency) == inf


@dataclass(frozen=True, slots=True)
class Routing:
    """How a replica is chosen.

    `prefix-aware` is the rule of the SGLang router (cache_aware, its flags and defaults): while
    loads are even, the replica that was sent the longest matching prefix, if that covers more
    than `cache_threshold` of the prompt, else the one with the fewest requests; loads are uneven,
    and the fewest requests win, when max - min > `balance_abs_threshold` and max >
    `balance_rel_threshold` x min.
    """

    policy: RouterPolicy = "least-requests"
    health_check_interval_s: float = 5.0
    cache_threshold: float = 0.3
    balance_abs_threshold: int = 64
    balance_rel_threshold: float = 1.5

    @property
    def looks_at_load(self) -> bool:
        return self.policy not in ("round-robin", "random")

    @property
    def looks_inside(self) -> bool:
        """At more of a replica than how many of its requests are not answered."""
        return self.policy == "least-kv"


@dataclass(frozen=True, slots=True)
class Failure:
    """A replica that dies with all it holds, and comes back empty."""

    replica: int
    at_s: float
    recovers_s: float = inf


@dataclass(frozen=True, slots=True)
class FleetSettings:
    num_replicas: int = 1
    clients: Clients = Clients()
    admission: Admission = Admission()
    routing: Routing = Routing()
    failures: tuple[Failure, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_replicas < 1:
            raise ValueError("a fleet has at least one replica")
        for failure in self.failures:
            if not 0 <= failure.replica < self.num_replicas:
                raise ValueError(f"there is no replica {failure.replica}")
            if not 0 <= failure.at_s < failure.recovers_s:
                raise ValueError("a replica recovers after it has failed")
        by_replica = sorted(self.failures, key=lambda f: (f.replica, f.at_s))
        for first, second in pairwise(by_replica):
            if first.replica == second.replica and second.at_s <= first.recovers_s:
                raise ValueError(f"replica {first.replica} fails while it is down")
