"""The fleet around the engine's own scheduler: nothing changes but what the fleet adds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.fleet.driver import Driver
from capplan.simulator.fleet.plan import check_failures, fleet_settings
from capplan.simulator.fleet.records import FleetOutcome
from capplan.simulator.fleet.server import MakeReplica
from capplan.simulator.fleet.settings import Admission, Clients, Failure, FleetSettings, Routing
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.fleet.sources import ClosedLoop, OpenTraffic
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Request
from capplan.simulator.simulate import open_replica, simulate
from capplan.simulator.step_time import AffineStepTime
from capplan.simulator.traffic.build import requests_of
from capplan.specs.clients import AdmissionSpec, ClientsSpec, FailureSpec, RouterSpec
from capplan.specs.fields import SpecError
from capplan.specs.traffic import TrafficSpec

AFFINE = AffineStepTime(2.0**-7, 2.0**-16, 2.0**-24)
both_modes = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def config(**options: Any) -> SchedulerConfig:
    return SchedulerConfig(**({"num_gpu_blocks": 900, "max_num_seqs": 24} | options))


def replicas(settings: SchedulerConfig) -> MakeReplica:
    return lambda sink: open_replica(settings, AFFINE, sink)


def poisson(number: int, rate_per_s: float, seed: int = 1) -> list[Request]:
    rng, clock, requests = random.Random(seed), 0.0, []
    for index in range(number):
        clock += rng.expovariate(rate_per_s)
        prompt, output = rng.randint(1, 800), rng.randint(1, 80)
        prefix = ((f"system {index % 5}", 100),) if index % 2 else ()
        requests.append(Request(f"r{index}", clock, prompt, output, prefix=prefix))
    return requests


@both_modes
@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("rate", [3.0, 30.0])
def test_one_replica_and_open_traffic_are_the_core(
    asynchronous: bool, caching: bool, rate: float
) -> None:
    setup = config(async_scheduling=asynchronous, enable_prefix_caching=caching)
    requests = [*poisson(500, rate), Request("too long", 1e6, 10_000, 1)]
    alone = simulate(requests, setup, AFFINE)
    fleet = simulate_fleet(requests, replicas(setup))
    driven = Driver(OpenTraffic(requests), replicas(setup), FleetSettings()).run()
    assert fleet.records == driven.records == alone.records
    assert fleet.clients == driven.clients
    assert fleet.replicas[0].lives == driven.replicas[0].lives
    assert fleet.replicas[0].lives[0].num_steps == alone.num_steps
    assert fleet.counts.num_refused == 1
    assert fleet.counts.num_offered == 501


@both_modes
@pytest.mark.parametrize("policy", ["least-requests", "least-kv", "prefix-aware", "random-of-two"])
def test_patient_clients_by_the_short_way_and_by_the_driver(
    asynchronous: bool, policy: Any
) -> None:
    """A finish is told early, with the step that makes it: the router must not know it before."""
    setup = config(async_scheduling=asynchronous)
    plan = FleetSettings(3, routing=Routing(policy))
    requests = poisson(600, 60.0)
    short = simulate_fleet(requests, replicas(setup), plan)
    assert short == Driver(OpenTraffic(requests), replicas(setup), plan).run()


class EveryPass:
    """A replica of which nobody knows when it will have a finish: it is never left behind."""

    def __init__(self, loop: ReplicaLoop) -> None:
        for door in ("submit", "abort", "abort_all", "first_token_s", "advance", "close"):
            setattr(self, door, getattr(loop, door))
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        if name in ("stops_at_finish", "quiet_until_s", "run"):
            raise AttributeError(name)
        return getattr(self._loop, name)


@settings(max_examples=60, deadline=None)
@given(
    st.booleans(), st.booleans(), st.sampled_from([8.0, 40.0, 90.0]), st.integers(0, 1000),
    st.sampled_from([120, 400]), st.sampled_from([64, 2048]),
    st.sampled_from(["least-requests", "prefix-aware", "random-of-two"]), st.booleans(),
)  # fmt: skip
def test_replicas_that_lag_behind_do_the_same(
    asynchronous: bool, caching: bool, rate: float, seed: int, blocks: int, budget: int,
    policy: Any, fails: bool,
) -> None:  # fmt: skip
    """While nobody finishes a replica is left alone: it makes the same passes later."""
    setup = config(
        async_scheduling=asynchronous, enable_prefix_caching=caching, num_gpu_blocks=blocks,
        max_num_seqs=8, max_num_batched_tokens=budget, max_model_len=1000,
    )  # fmt: skip
    stops = [r._replace(max_tokens=200) if i % 7 == 3 else r
             for i, r in enumerate(poisson(120, rate, seed))]  # fmt: skip
    plan = FleetSettings(
        3,
        clients=Clients(retries=5, retry_on=("failed",)),
        routing=Routing(policy, health_check_interval_s=0.3),
        failures=(Failure(0, 0.31), Failure(1, 0.5, 0.81)) if fails else (),
    )
    lagging = simulate_fleet(stops, replicas(setup), plan)
    exact = simulate_fleet(stops, lambda sink: EveryPass(replicas(setup)(sink)), plan)
    assert ended(lagging) == ended(exact)


def ended(outcome: FleetOutcome) -> FleetOutcome:
    """Without the sum of a life that was cut short: whoever came during its last pass, and was
    not looked at any more, may or may not be counted in it."""
    kept = [
        replace(
            each,
            lives=tuple(
                replace(life, request_seconds=0.0) if life.end == "stopped" else life
                for life in each.lives
            ),
        )
        for each in outcome.replicas
    ]
    return replace(outcome, replicas=tuple(kept))


clients = st.builds(
    Clients,
    timeout_s=st.sampled_from([inf, 0.05, 0.4, 1.5]),
    timeout_on=st.sampled_from(["ttft", "e2e"]),
    retries=st.integers(0, 2),
    backoff=st.sampled_from(["none", "exponential"]),
    cancels=st.booleans(),
)
admission = st.builds(
    Admission,
    max_queue_depth=st.sampled_from([inf, 3]),
    max_queue_wait_s=st.sampled_from([inf, 0.3]),
    max_concurrency=st.sampled_from([inf, 10]),
)
plans = st.builds(
    FleetSettings,
    num_replicas=st.integers(2, 3),
    clients=clients,
    admission=admission,
    routing=st.builds(
        Routing,
        policy=st.sampled_from(["round-robin", "least-requests", "least-kv", "prefix-aware"]),
        health_check_interval_s=st.just(0.3),
    ),
    failures=st.sampled_from([(), (Failure(0, 0.31), Failure(1, 0.5, 0.81))]),
)


@settings(max_examples=80, deadline=None)
@given(
    plans, st.booleans(), st.booleans(), st.sampled_from([20.0, 90.0]),
    st.one_of(st.none(), st.integers(1, 30)), st.integers(0, 5),
)  # fmt: skip
def test_every_request_ends_once_and_in_time(
    plan: FleetSettings,
    asynchronous: bool,
    caching: bool,
    rate: float,
    users: int | None,
    seed: int,
) -> None:
    setup = config(
        async_scheduling=asynchronous, enable_prefix_caching=caching, num_gpu_blocks=150,
        max_num_seqs=8, max_model_len=2000,
    )  # fmt: skip
    requests = poisson(80, rate, seed)
    source: Any = ClosedLoop(requests, users) if users else requests
    outcome = simulate_fleet(source, replicas(setup), plan)
    assert sorted(c.id for c in outcome.clients) == sorted(r.id for r in requests)
    ends = Counter(client.end for client in outcome.clients)
    assert ends["unfinished"] == ends["refused"] == 0
    assert sum(c.num_attempts for c in outcome.clients) == len(outcome.lost) + ends["ok"]
    timeout_s = plan.clients.timeout_s
    for record in outcome.records:
        by_s = record.ttft_s if plan.clients.timeout_on == "ttft" else record.e2e_s
        assert by_s <= timeout_s + 1e-9
    for attempt in outcome.lost:
        if attempt.end == "timed out":
            assert attempt.end_s - attempt.sent_s == pytest.approx(timeout_s)
    for failure in plan.failures:
        served = [r.finish_s for r in outcome.replicas[failure.replica].records]
        assert not [at for at in served if failure.at_s < at <= failure.recovers_s]
    assert outcome.counts.wasted_tokens >= 0


@both_modes
def test_a_closed_loop_of_one_user_is_the_chain_of_bare_step_times(asynchronous: bool) -> None:
    setup = config(async_scheduling=asynchronous, enable_prefix_caching=False)
    requests = [Request(f"r{i}", 0.0, 100 + i, 10 + i) for i in range(30)]
    outcome = simulate_fleet(ClosedLoop(requests, 1), replicas(setup))
    clock = 0.0
    for client, request in zip(outcome.clients, requests, strict=True):
        assert client.sent_s == clock
        prompt, output = request.prompt_tokens, request.output_tokens
        step_s = AFFINE.mixed(0, 0, [(prompt, 0)])
        assert client.ttft_s == pytest.approx(step_s, rel=1e-9)
        contexts = range(prompt + 1, prompt + output)
        rest_s = sum(AFFINE.a + AFFINE.b + AFFINE.c * context for context in contexts)
        assert client.e2e_s == pytest.approx(step_s + rest_s, rel=1e-9)
        clock = client.end_s


@both_modes
def test_full_batches_of_a_closed_loop(asynchronous: bool) -> None:
    """Equal requests, as many users as slots: everybody starts and ends together."""
    setup = config(async_scheduling=asynchronous, enable_prefix_caching=False, max_num_seqs=8)
    requests = [Request(f"r{i}", 0.0, 64, 32) for i in range(40)]
    outcome = simulate_fleet(ClosedLoop(requests, 8), replicas(setup))
    rounds = sorted({client.sent_s for client in outcome.clients})
    assert Counter(client.sent_s for client in outcome.clients) == dict.fromkeys(rounds, 8)
    assert len(rounds) == 5


def test_a_retried_prompt_is_found_in_the_cache() -> None:
    """It is the same prompt: what the attempt before has computed need not be computed again."""
    long = Request("long", 0.0, 4000, 3)
    step = AffineStepTime(0.1, 0.0, 0.0)  # chunks of 500: 0.8 s to the first token

    def second_attempt(caching: bool) -> Any:
        setup = config(
            enable_prefix_caching=caching, max_num_batched_tokens=500, async_scheduling=False
        )
        plan = FleetSettings(clients=Clients(timeout_s=0.55, retries=1))
        return simulate_fleet([long], lambda sink: open_replica(setup, step, sink), plan)

    assert second_attempt(caching=False).counts.num_timed_out == 1
    outcome = second_attempt(caching=True)
    assert outcome.counts.num_ok == 1
    assert outcome.records[0].cached_tokens == 6 * 500 // 16 * 16
    assert outcome.clients[0].ttft_s == pytest.approx(0.55 + 0.05 + 0.3)


def test_conversations_go_on_when_they_are_answered() -> None:
    spec = TrafficSpec.model_validate(
        {
            "rate": "2/s",
            "prompt": "100",
            "output": "20",
            "requests": 300,
            "chat": {"turns": "uniform:2-5", "think_time": "2s"},
        }
    )
    setup = config(num_gpu_blocks=4000)
    outcome = simulate_fleet(requests_of(spec), replicas(setup), FleetSettings(2))
    assert outcome.counts.num_ok == 300
    by_id = {client.id: client for client in outcome.clients}
    followed = 0
    for id, client in by_id.items():
        session, _, turn = id.rpartition(".")
        before = by_id.get(f"{session}.{int(turn) - 1}")
        if before:
            followed += 1
            assert client.sent_s == pytest.approx(before.end_s + 2.0)
    assert followed > 100


def test_users_of_a_plan_are_users_of_the_loop() -> None:
    spec = TrafficSpec.model_validate(
        {"prompt": "100", "output": "20", "requests": 200, "closed_loop": {"users": 7}}
    )
    outcome = simulate_fleet(requests_of(spec), replicas(config()))
    assert outcome.counts.num_ok == 200
    changes = sorted(
        [(c.sent_s, 1) for c in outcome.clients] + [(c.end_s, -1) for c in outcome.clients]
    )
    level = most = 0
    for _, change in changes:
        level += change
        most = max(most, level)
    assert most == 7


# Sections of a plan.


def test_sections_become_settings() -> None:
    plan = fleet_settings(
        2,
        clients=ClientsSpec.model_validate(
            {"timeout": "10 s", "retries": 3, "backoff": "exponential", "backoff_base": "500ms"}
        ),
        admission=AdmissionSpec.model_validate({"max_queue_depth": 64, "retry_after": "2s"}),
        router=RouterSpec.model_validate({"policy": "prefix-aware", "cache_threshold": 0.5}),
        failures=[FailureSpec.model_validate({"replica": 1, "at": "10min", "down_for": "90s"})],
    )
    assert plan.clients == Clients(10.0, retries=3, backoff="exponential", backoff_s=0.5)
    assert plan.admission == Admission(max_queue_depth=64, retry_after_s=2.0)
    assert plan.routing == Routing("prefix-aware", cache_threshold=0.5)
    assert plan.failures == (Failure(1, 600.0, 690.0),)
    assert fleet_settings(1) == FleetSettings()


@pytest.mark.parametrize(
    ("spec", "data", "message"),
    [
        (ClientsSpec, {"cancels": False}, "without a `timeout`"),
        (ClientsSpec, {"timeout": "1s", "backoff": "fixed"}, "without `retries`"),
        (ClientsSpec, {"retries": 1, "backoff_base": "1s"}, "without a `backoff`"),
        (ClientsSpec, {"timeout": "400"}, "has no unit"),
        (RouterSpec, {"cache_threshold": 0.2}, "says nothing to `least-requests`"),
        (RouterSpec, {"policy": "fastest"}, "least-requests"),
    ],
)
def test_sections_that_say_nothing_are_refused(
    spec: Callable[..., Any], data: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        spec.model_validate(data)  # type: ignore[attr-defined]


def test_failures_that_cannot_be_are_refused_with_their_place() -> None:
    def failure(**data: Any) -> FailureSpec:
        return FailureSpec.model_validate(data)

    first = failure(replica=0, at="10s", down_for="5s")
    check_failures([first, failure(replica=0, at="20s"), failure(replica=1, at="12s")], 2)
    for second, path in (
        (failure(replica=2, at="1s"), ("failures", 1, "replica")),
        (failure(replica=0, at="12s"), ("failures", 1, "at")),
    ):
        with pytest.raises(SpecError) as caught:
            check_failures([first, second], 2)
        assert caught.value.path == path
