"""Clients, admission, router and failures, on a replica whose theory is known."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import inf
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_replica import ToyReplica

from capplan.simulator.fleet.driver import Driver
from capplan.simulator.fleet.records import FleetOutcome
from capplan.simulator.fleet.settings import Admission, Clients, Failure, FleetSettings, Routing
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.fleet.sources import ClosedLoop, OpenTraffic, Source
from capplan.simulator.requests import Request, RequestRecord

TICK_S = 1e-6
POLICIES = ("round-robin", "random", "random-of-two", "least-requests", "least-kv", "prefix-aware")
exponential = partial(ToyReplica, decode_s=TICK_S)  # service times in ticks: the output tokens


def poisson(number: int, rate_per_s: float, mean_s: float = 1.0, seed: int = 1) -> list[Request]:
    """Exponential gaps and exponential service times."""
    gaps, times, clock, requests = random.Random(seed), random.Random(seed + 1), 0.0, []
    for index in range(number):
        clock += gaps.expovariate(rate_per_s)
        ticks = 1 + int(times.expovariate(1 / mean_s) / TICK_S)
        requests.append(Request(f"r{index}", clock, 1, ticks))
    return requests


def regular(number: int, gap_s: float, prompt: int = 1, output: int = 1) -> list[Request]:
    return [Request(f"r{index}", index * gap_s, prompt, output) for index in range(number)]


def mean_e2e_s(outcome: FleetOutcome) -> float:
    return fmean(client.e2e_s for client in outcome.clients)


# Accounts.

traffic = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8), st.integers(1, 12)), min_size=1, max_size=40
)
clients = st.builds(
    Clients,
    timeout_s=st.sampled_from([inf, 3.0, 9.0]),
    timeout_on=st.sampled_from(["ttft", "e2e"]),
    retries=st.integers(0, 3),
    backoff=st.sampled_from(["none", "fixed", "exponential"]),
    cancels=st.booleans(),
)
admission = st.builds(
    Admission,
    max_queue_depth=st.sampled_from([inf, 1, 4]),
    max_queue_wait_s=st.sampled_from([inf, 2.0]),
    max_concurrency=st.sampled_from([inf, 3]),
    retry_after_s=st.sampled_from([0.0, 1.5]),
)
failures = st.sampled_from(
    [(), (Failure(0, 7.0),), (Failure(0, 4.0, 11.0), Failure(1, 5.5, 6.0), Failure(0, 12.0))]
)


@settings(max_examples=150, deadline=None)
@given(
    traffic, clients, admission, st.sampled_from(POLICIES), failures, st.integers(2, 3),
    st.one_of(st.none(), st.integers(1, 4)),
)  # fmt: skip
def test_every_request_ends_exactly_once(
    entries: list[tuple[int, int, int]],
    clients: Clients,
    admission: Admission,
    policy: Any,
    failures: tuple[Failure, ...],
    replicas: int,
    users: int | None,
) -> None:
    """And the replica itself asserts that no request comes to a pass already made."""
    requests = [
        Request(f"r{index}", float(at), prompt, output, prefix=((f"s{index % 3}", prompt // 2),))
        for index, (at, prompt, output) in enumerate(sorted(entries))
    ]
    plan = FleetSettings(
        replicas, clients, admission, Routing(policy, health_check_interval_s=2.0), failures
    )
    make = partial(ToyReplica, num_servers=2, prefill_s=0.5, decode_s=0.25, longest=7)
    outcomes = []
    for _ in range(2):
        source: Any = ClosedLoop(requests, users, think_s=0.5) if users else requests
        outcomes.append(simulate_fleet(source, make, plan))
    outcome, again = outcomes
    assert outcome == again
    assert sorted(c.id for c in outcome.clients) == sorted(r.id for r in requests)
    attempts = sum(client.num_attempts for client in outcome.clients)
    answered = Counter(client.end for client in outcome.clients)
    assert answered["unfinished"] == 0
    assert attempts == len(outcome.lost) + answered["ok"] + answered["refused"]
    assert len(outcome.records) == answered["ok"]
    assert all(client.num_attempts <= 1 + clients.retries for client in outcome.clients)
    assert all(client.e2e_s >= 0 for client in outcome.clients)
    got = {record.id.partition("#")[0]: record for record in outcome.records}
    for client in outcome.clients:
        if client.end == "ok":
            assert client.end_s == got[client.id].finish_s
            waited = got[client.id].first_token_s - got[client.id].arrival_s
            if clients.timeout_on == "ttft":
                assert waited <= clients.timeout_s
            else:
                assert got[client.id].e2e_s <= clients.timeout_s


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("replicas", [1, 3])
def test_the_short_way_is_the_drivers(policy: Any, replicas: int) -> None:
    requests = poisson(400, 0.9 * replicas)
    plan = FleetSettings(replicas, routing=Routing(policy))
    make = partial(exponential, longest=1)
    short = simulate_fleet(requests, make, plan)
    assert short == Driver(OpenTraffic(requests), make, plan).run()


# Queueing theory.


def erlang_c(servers: int, load: float) -> float:
    """Probability of waiting in M/M/c, `load` per server."""
    offered, inverse_b = servers * load, 1.0
    for k in range(1, servers + 1):
        inverse_b = 1 + inverse_b * k / offered
    blocked = 1 / inverse_b
    return blocked / (1 - load * (1 - blocked))


def test_one_replica_is_an_mmc_queue() -> None:
    servers, load = 3, 0.8
    outcome = simulate_fleet(
        poisson(30_000, servers * load), partial(exponential, num_servers=servers)
    )
    wait_s = erlang_c(servers, load) / (servers * (1 - load))
    assert mean_e2e_s(outcome) == pytest.approx(1 + wait_s, rel=0.08)


def test_routers_between_their_closed_forms() -> None:
    """Random: M/M/1 each. One queue for all, M/M/c, is the best that no router reaches."""
    replicas, load = 4, 0.8
    requests = poisson(25_000, replicas * load)
    times = {}
    for policy in ("random", "random-of-two", "least-requests", "round-robin"):
        plan = FleetSettings(replicas, routing=Routing(policy))  # type: ignore[arg-type]
        times[policy] = mean_e2e_s(simulate_fleet(requests, exponential, plan))
    assert times["random"] == pytest.approx(1 / (1 - load), rel=0.12)
    best_s = 1 + erlang_c(replicas, load) / (replicas * (1 - load))
    assert best_s < times["least-requests"] < times["random-of-two"] < times["random"]
    assert times["least-requests"] < times["round-robin"] < times["random"]


def test_random_of_two_is_mitzenmachers_sum() -> None:
    """Many servers: mean time sum of load^(2^i - 2) (Mitzenmacher 2001, d = 2)."""
    replicas, load = 32, 0.9
    plan = FleetSettings(replicas, routing=Routing("random-of-two"))
    outcome = simulate_fleet(poisson(12_000, replicas * load), exponential, plan)
    steady = [client.e2e_s for client in outcome.clients if client.sent_s > 60]
    expected_s = sum(load ** (2**i - 2) for i in range(1, 12))
    assert fmean(steady) == pytest.approx(expected_s, rel=0.1)


@pytest.mark.parametrize("users", [1, 4, 12])
def test_a_closed_loop_is_the_machine_repair_model(users: int) -> None:
    """Exact mean value analysis of one server and a delay (Reiser and Lavenberg 1980)."""
    think_s, queue, throughput = 5.0, 0.0, 0.0
    for number in range(1, users + 1):
        response_s = 1.0 + queue
        throughput = number / (response_s + think_s)
        queue = throughput * response_s
    rng = random.Random(9)
    loop = ClosedLoop(poisson(20_000, inf), users, think_s=lambda: rng.expovariate(1 / think_s))
    outcome = simulate_fleet(loop, exponential)
    assert len(outcome.clients) / outcome.end_s == pytest.approx(throughput, rel=0.04)


# Closed loop.


def test_one_user_is_a_chain_of_bare_requests() -> None:
    requests = [Request(f"r{i}", 0.0, 3, 5 + i) for i in range(20)]
    make = partial(ToyReplica, num_servers=4, prefill_s=0.5, decode_s=0.25)
    outcome = simulate_fleet(ClosedLoop(requests, 1, think_s=2.0), make)
    clock = 0.0
    for client, request in zip(outcome.clients, requests, strict=True):
        assert (client.id, client.sent_s) == (request.id, clock)
        assert client.ttft_s == 1.5
        assert client.e2e_s == 1.5 + 0.25 * request.output_tokens
        clock = client.end_s + 2.0


def test_a_semaphore_before_arrival_times() -> None:
    """`vllm bench serve --max-concurrency 2 --request-rate ...`: sent in order, two at a time."""
    requests = [Request(f"r{i}", at, 1, 4) for i, at in enumerate((0.0, 1.0, 2.0, 3.0, 20.0))]
    outcome = simulate_fleet(ClosedLoop(requests, 2), partial(ToyReplica, num_servers=9))
    assert [client.sent_s for client in outcome.clients] == [0.0, 1.0, 4.0, 5.0, 20.0]


def test_a_burst_at_the_start_then_one_for_one() -> None:
    outcome = simulate_fleet(ClosedLoop(regular(30, 0.0), 8), partial(ToyReplica, num_servers=8))
    assert Counter(client.sent_s for client in outcome.clients) == {0: 8, 1: 8, 2: 8, 3: 6}


def test_a_warm_up_ends_before_the_measured_requests_begin() -> None:
    outcome = simulate_fleet(ClosedLoop(regular(9, 0.0), 2, warmup=3), ToyReplica)
    sent = [client.sent_s for client in outcome.clients]
    assert outcome.measured_from_s == 3.0
    assert [at < 3.0 for at in sent] == [True] * 3 + [False] * 6
    assert sent[3:5] == [3.0, 3.0]


@pytest.mark.parametrize("policy", POLICIES)
def test_replicas_in_a_closed_loop_share_the_users(policy: Any) -> None:
    plan = FleetSettings(4, routing=Routing(policy), seed=3)
    outcome = simulate_fleet(
        ClosedLoop(poisson(2000, inf), 12), partial(exponential, num_servers=2), plan
    )
    assert sum(replica.num_sent for replica in outcome.replicas) == 2000
    assert min(replica.num_sent for replica in outcome.replicas) > 350


# Clients.


def overload(**options: Any) -> FleetOutcome:
    """Service 1 s, a request every 0.8 s: the queue grows without end."""
    return simulate_fleet(
        regular(400, 0.8), ToyReplica, FleetSettings(clients=Clients(timeout_s=5.0, **options))
    )


def test_retries_amplify_and_do_not_help() -> None:
    patient = simulate_fleet(regular(400, 0.8), ToyReplica)
    assert patient.counts.amplification == 1.0
    assert patient.counts.num_ok == 400
    once, storm = overload(), overload(retries=4)
    assert once.counts.amplification == 1.0
    assert storm.counts.amplification > 1.5
    # What is answered per second is what the server can do, at best.
    assert storm.counts.num_ok / storm.end_s <= 1.0
    waits = [client.ttft_s for client in storm.clients if client.ttft_s is not None]
    assert max(waits) > 5.0  # counted from the first attempt


def test_work_for_clients_who_have_gone_is_wasted() -> None:
    """Without cancelling, the server answers people who do not listen any more."""
    told = overload(timeout_on="e2e", retries=4)
    untold = overload(timeout_on="e2e", retries=4, cancels=False)
    assert untold.counts.num_ok < 0.5 * told.counts.num_ok
    assert untold.counts.wasted_fraction > 0.5
    assert len(untold.unwanted) + untold.counts.num_ok == len(untold.replicas[0].records)


def test_backoff() -> None:
    """Attempts one service apart from nothing: each waits for its time-out, then for its pause."""
    blocker = Request("long", 0.0, 1, 1000)

    def pauses(**options: Any) -> list[float]:
        clients = Clients(timeout_s=2.0, retries=4, retry_on=("timed out",), **options)
        plan = FleetSettings(clients=clients)
        outcome = simulate_fleet([blocker, Request("r", 0.0, 1, 1)], ToyReplica, plan)
        sent = [attempt.sent_s for attempt in outcome.lost if attempt.id == "r"]
        return [after - before - 2.0 for before, after in pairwise(sent)]

    fixed = {"backoff": "fixed", "backoff_s": 1.5}
    assert pauses(backoff="none") == [0.0] * 4
    assert pauses(**fixed) == [1.5] * 4
    doubling = {"backoff": "exponential", "backoff_s": 1.0, "backoff_max_s": 3.0}
    assert pauses(**doubling, jitter=False) == [1.0, 2.0, 3.0, 3.0]
    drawn = pauses(**doubling)
    assert all(0 <= pause <= most for pause, most in zip(drawn, (1, 2, 3, 3), strict=True))
    assert len(set(drawn)) == 4


def test_a_token_at_the_last_moment_counts() -> None:
    for timeout_s, end in ((3.0, "ok"), (2.999, "timed out")):
        plan = FleetSettings(clients=Clients(timeout_s=timeout_s))
        make = partial(ToyReplica, prefill_s=3.0)
        assert simulate_fleet([Request("r", 0.0, 1, 5)], make, plan).clients[0].end == end


# Protection.


@pytest.mark.parametrize(
    ("limits", "most_waiting"),
    [({"max_queue_depth": 3}, 3), ({"max_concurrency": 3}, 2), ({"max_queue_wait_s": 4.0}, 6)],
)
def test_limits_bound_the_queue(limits: dict[str, Any], most_waiting: int) -> None:
    plan = FleetSettings(admission=Admission(**limits))
    outcome = simulate_fleet(regular(400, 0.8), ToyReplica, plan)
    waits = [client.ttft_s or 0.0 for client in outcome.clients if client.end == "ok"]
    assert max(waits) <= most_waiting + 1
    assert outcome.counts.num_rejected == pytest.approx(400 * 0.2, rel=0.1)
    assert outcome.counts.num_ok / outcome.end_s == pytest.approx(1.0, rel=0.02)


def test_a_pause_is_no_reason_to_refuse() -> None:
    """The pace is that of a busy replica, whatever the pauses in which nobody came."""
    bursts = [Request(f"r{i}.{j}", 1000.0 * i, 1, 1) for i in range(5) for j in range(4)]
    plan = FleetSettings(admission=Admission(max_queue_wait_s=4.0))
    assert simulate_fleet(bursts, ToyReplica, plan).counts.num_rejected == 0


def test_retry_after_is_kept() -> None:
    plan = FleetSettings(
        clients=Clients(retries=9), admission=Admission(max_concurrency=1, retry_after_s=2.5)
    )
    requests = [Request("long", 0.0, 1, 12), Request("r", 1.0, 1, 1)]
    outcome = simulate_fleet(requests, ToyReplica, plan)
    assert [attempt.sent_s for attempt in outcome.lost] == [1.0, 3.5, 6.0, 8.5, 11.0]
    assert outcome.clients[-1].sent_s == 1.0
    assert outcome.clients[-1].ttft_s == 12.5


# Router and failures.


def test_a_failing_replica_is_accounted_for() -> None:
    """Down from 20 to 50 s; the router, which looks every 6 s, knows from 24 to 54 s."""
    plan = FleetSettings(
        2, routing=Routing("round-robin", 6.0), failures=(Failure(1, 20.25, 50.25),)
    )
    make = partial(ToyReplica, num_servers=2)
    outcome = simulate_fleet(regular(160, 0.5), make, plan)
    lost = outcome.lost
    assert {attempt.end for attempt in lost} == {"failed"}
    assert {attempt.replica for attempt in lost} == {1}
    caught = [attempt for attempt in lost if attempt.sent_s < 20.25]
    refused = [attempt for attempt in lost if attempt.sent_s > 20.25]
    assert [attempt.end_s for attempt in caught] == [20.25] * len(caught)
    assert len(caught) == 1  # one request a second, served in one
    assert [attempt.sent_s for attempt in refused] == [20.5, 21.5, 22.5, 23.5]
    assert outcome.counts.num_failed == len(lost)
    assert outcome.counts.num_ok == 160 - len(lost)
    # Everything goes to the other one while the router knows, and comes back after.
    there = [client.sent_s for client in outcome.clients if client.replica == 1]
    assert not [at for at in there if 20.25 < at < 54]
    assert [at for at in there if at > 54]
    assert len(outcome.replicas[1].lives) == 2


def test_clients_who_try_again_survive_a_failure() -> None:
    clients = Clients(retries=5, backoff="fixed", backoff_s=2.0)
    plan = FleetSettings(2, clients, failures=(Failure(0, 20.0),))
    outcome = simulate_fleet(regular(100, 0.7), partial(ToyReplica, num_servers=2), plan)
    assert outcome.counts.num_ok == 100
    assert outcome.counts.num_lost_failed > 0


def test_no_replica_left() -> None:
    plan = FleetSettings(1, failures=(Failure(0, 3.5),))
    outcome = simulate_fleet(regular(20, 1.0), ToyReplica, plan)
    assert (outcome.counts.num_ok, outcome.counts.num_failed) == (3, 17)


def test_prefix_aware_sticks_until_loads_are_uneven() -> None:
    def sent(abs_threshold: int) -> list[set[int | None]]:
        requests = [
            Request(f"r{i}", 0.01 * i, 100, 5, prefix=((f"system {i % 4}", 90),)) for i in range(80)
        ]
        rule = Routing("prefix-aware", balance_abs_threshold=abs_threshold)
        outcome = simulate_fleet(requests, ToyReplica, FleetSettings(4, routing=rule))
        by_prompt: list[set[int | None]] = [set(), set(), set(), set()]
        for client in outcome.clients:
            by_prompt[int(client.id[1:]) % 4].add(client.replica)
        return by_prompt

    assert all(len(replicas) == 1 for replicas in sent(64))
    hot = [Request(f"r{i}", 0.01 * i, 100, 5, prefix=(("one", 90),)) for i in range(80)]
    rule = Routing("prefix-aware", balance_abs_threshold=4)
    outcome = simulate_fleet(hot, ToyReplica, FleetSettings(4, routing=rule))
    assert min(replica.num_sent for replica in outcome.replicas) >= 15


# Settings.


def test_settings_that_cannot_be() -> None:
    for make, message in (
        (lambda: FleetSettings(0), "at least one"),
        (lambda: FleetSettings(1, failures=(Failure(1, 2.0),)), "no replica 1"),
        (lambda: FleetSettings(1, failures=(Failure(0, 2.0, 1.0),)), "recovers after"),
        (lambda: FleetSettings(1, failures=(Failure(0, 2.0), Failure(0, 3.0))), "while it is down"),
    ):
        check_fault(make, message)


def check_fault(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_sources_are_sources() -> None:
    assert isinstance(OpenTraffic([]), Source)
    assert isinstance(ClosedLoop([], 1), Source)
    assert simulate_fleet([], ToyReplica).clients == ()


@pytest.mark.parametrize("policy", ["round-robin", "least-requests"])
def test_an_interrupt_keeps_what_is_known(policy: Any) -> None:
    def make(sink: Callable[[RequestRecord], object]) -> ToyReplica:
        def stop_after_ten(record: RequestRecord) -> None:
            if len(seen) == 10:
                raise KeyboardInterrupt
            seen.append(record.id)
            sink(record)

        return ToyReplica(stop_after_ten)

    seen: list[str] = []
    plan = FleetSettings(2, routing=Routing(policy))
    outcome = simulate_fleet(regular(200, 0.4), make, plan)
    assert outcome.interrupted
    assert sorted(record.id for record in outcome.records) == sorted(seen)
    ends = Counter(client.end for client in outcome.clients)
    assert ends["ok"] == 10
    assert set(ends) <= {"ok", "unfinished"}
