"""The open form of a replica: where it pauses changes nothing, and what leaves leaves nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import pytest
from random_scenarios import scenario as random_scenario

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.simulate import open_replica, simulate
from capplan.simulator.step_time import AffineStepTime
from capplan.simulator.traces import config_of, requests_of

AFFINE = AffineStepTime(0.0071, 1.3e-5, 7.1e-8)
Make = Callable[[SchedulerConfig, Callable[[RequestRecord], object]], Replica | DetailedReplica]


def counters(config: SchedulerConfig, on_finish: Callable[[RequestRecord], object]) -> Replica:
    return Replica(config, AFFINE, on_finish)


def detailed(
    config: SchedulerConfig, on_finish: Callable[[RequestRecord], object]
) -> DetailedReplica:
    return DetailedReplica(config, AFFINE, on_finish)


both_paths = pytest.mark.parametrize("make", [counters, detailed])
both_modes = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def cases(first: int, last: int) -> Iterator[tuple[int, SchedulerConfig, list[Request]]]:
    for seed in range(first, last):
        case = random_scenario(seed)
        yield seed, config_of(case), requests_of(case["requests"])


def closed(
    make: Make, config: SchedulerConfig, requests: list[Request]
) -> tuple[Outcome, list[RequestRecord]]:
    records: list[RequestRecord] = []
    return make(config, records.append).run(requests), records


@both_paths
def test_an_open_run_is_the_closed_run(make: Make) -> None:
    """Bit for bit, the sums included, whatever the horizons and whoever submits when."""
    for seed, config, requests in cases(0, 400):
        expected = closed(make, config, requests)
        records: list[RequestRecord] = []
        loop, rng, clock = make(config, records.append), random.Random(seed), 0.0
        for request in requests:
            while clock < request.arrival_s:  # in some steps of our own
                target = request.arrival_s
                if rng.random() < 0.5:
                    target = min(target, clock + rng.expovariate(50.0))
                clock = loop.advance(target)
            loop.submit(request)
        while loop.next_s < inf:
            loop.advance(inf if rng.random() < 0.5 else loop.next_s + rng.expovariate(20.0))
        assert (loop.close(), records) == expected, seed


@both_paths
def test_all_submitted_at_once_is_the_closed_run(make: Make) -> None:
    for seed, config, requests in cases(400, 500):
        records: list[RequestRecord] = []
        loop = make(config, records.append)
        for request in requests:
            loop.submit(request)
        while loop.next_s < inf:
            before, finished = loop.next_s, len(records)
            reached = loop.advance(inf)
            assert reached >= before
            assert len(records) > finished or loop.next_s == inf, "stops where somebody finished"
        assert (loop.close(), records) == closed(make, config, requests), seed


@both_paths
@both_modes
def test_an_answer_to_a_finish_is_never_in_the_past(make: Make, asynchronous: bool) -> None:
    """A closed loop of clients without thinking time: the next request comes at `finish_s`."""
    finished: list[RequestRecord] = []
    config = SchedulerConfig(500, async_scheduling=asynchronous, max_num_seqs=4)
    loop = make(config, finished.append)
    for client in range(6):
        loop.submit(Request(f"{client}.0", 0.0, 50 + client, 5 + client))
    taken = 0
    while loop.next_s < inf:
        reached = loop.advance(inf)
        for record in finished[taken:]:
            client, number = map(int, record.id.split("."))
            assert loop.next_s >= record.finish_s
            assert reached == record.finish_s
            if number < 20:
                reply = Request(f"{client}.{number + 1}", record.finish_s, 40, 3 + number % 5)
                assert loop.submit(reply) is None
        taken = len(finished)
    assert len(finished) == 6 * 21
    # The same arrivals, known in advance, are served alike.
    known = {r.id: Request(r.id, r.arrival_s, r.prompt_tokens, r.output_tokens) for r in finished}
    in_order = sorted(known.values(), key=lambda r: r.arrival_s)
    assert {r.id for r in closed(make, config, in_order)[1]} == known.keys()


def held_blocks(loop: Any) -> int:
    """Blocks that the requests in the engine hold, by their tokens."""
    if isinstance(loop, DetailedReplica):
        blocks = {id(b) for s in loop.scheduler.running for b in s.own.tables[0] if b is not None}
        return len(blocks)
    size, named, nameless = loop.block_size, set(), 0
    for seq in loop.running:
        tokens = seq.computed if seq.last_step == -1 else loop.step + seq.offset
        own = seq.blocks if loop.cache else []
        named.update(own)
        nameless += -(-tokens // size) - len(own)
    if loop.cache:
        loop.cache.table.settle(loop.free)
        assert loop.cache.table.num_free == loop.free
    return len(named) + nameless


@both_paths
def test_aborts_conserve_blocks(make: Make) -> None:
    """After each abort what is used is what those who are left hold; the others all finish."""
    aborted = 0
    for seed, config, requests in cases(0, 250):
        records: list[RequestRecord] = []
        loop, rng = make(config, records.append), random.Random(seed)
        here: dict[str, None] = {}
        refused = 0
        gone = 0
        for request in [*requests, None]:
            while loop.next_s < (request.arrival_s if request else inf):
                loop.advance(min(request.arrival_s if request else inf, loop.next_s + 0.03))
                assert loop.num_used_blocks == held_blocks(loop), seed
                for record in records:
                    here.pop(record.id, None)
                if here and rng.random() < 0.2:
                    victim = rng.choice(list(here))
                    assert loop.abort(victim)
                    assert not loop.abort(victim)
                    del here[victim]
                    gone += 1
                    assert loop.num_used_blocks == held_blocks(loop), seed
            if request:
                loop.advance(request.arrival_s)
                if loop.submit(request) is None:
                    here[request.id] = None
                else:
                    refused += 1
        outcome = loop.close()
        if outcome.end == "finished":
            assert loop.num_used_blocks == 0
            assert len(records) + gone + refused == len(requests), seed
        assert outcome.end != "stopped"
        aborted += gone
    assert aborted > 200


def test_both_paths_abort_alike() -> None:
    """The same aborts at the same times: the same records and sums."""
    for seed, config, requests in cases(0, 250):
        results = []
        for make in (counters, detailed):
            records: list[RequestRecord] = []
            loop, rng = make(config, records.append), random.Random(seed)
            events = [(r.arrival_s, 0, r) for r in requests]
            events += [(r.arrival_s + rng.expovariate(3.0), 1, r) for r in requests[::2]]
            for time_s, kind, request in sorted(events, key=lambda e: e[:2]):
                while loop.advance(time_s) < time_s:
                    pass
                if kind == 0:
                    loop.submit(request)
                else:
                    loop.abort(request.id)
            while loop.next_s < inf:
                loop.advance(inf)
            outcome = loop.close()
            if outcome.end == "livelock":
                break
            area = outcome.request_seconds
            results.append((outcome.end, outcome.end_s, outcome.num_steps, records, area))
        if len(results) == 2:
            assert results[0][:4] == results[1][:4], seed
            assert results[0][4] == pytest.approx(results[1][4], rel=1e-9, abs=1e-9), seed


@both_paths
@both_modes
def test_a_failure_loses_all_and_starts_anew(make: Make, asynchronous: bool) -> None:
    """After it the replica is as one that starts at that time, without cached blocks."""
    config = SchedulerConfig(300, async_scheduling=asynchronous, max_num_seqs=8)
    shared = (("system", 64),)
    wave = [Request(f"a{i}", 0.01 * i, 100 + i, 30, prefix=shared) for i in range(20)]
    second = [Request(f"b{i}", 9.0 + 0.01 * i, 100 + i, 30, prefix=shared) for i in range(20)]
    records: list[RequestRecord] = []
    loop = make(config, records.append)
    for request in wave:
        loop.submit(request)
    while loop.advance(0.35) < 0.35:
        pass
    finished = {record.id for record in records}
    lost = loop.abort_all()
    assert [r.id for r in lost] == [r.id for r in wave if r.id not in finished]
    assert (loop.num_running, loop.num_waiting, loop.num_used_blocks) == (0, 0, 0)
    records.clear()
    loop.advance(9.0)
    for request in second:
        loop.submit(request)
    while loop.next_s < inf:
        loop.advance(inf)
    assert records == closed(make, config, second)[1]
    assert loop.close().end == "finished"


@both_paths
def test_a_blocked_queue_goes_on_when_its_head_is_aborted(make: Make) -> None:
    """Nobody runs and the head never fits; without it the next one does, at that time."""
    config = SchedulerConfig(11, watermark=0.0)
    records: list[RequestRecord] = []
    if make is counters:
        loop: Any = Replica(config, AFFINE, records.append, reject=False)
    else:
        loop = DetailedReplica(config, AFFINE, records.append, reject=False)
    loop.submit(Request("too long", 0.0, 900, 5))
    loop.submit(Request("short", 0.0, 30, 5))
    assert loop.advance(5.0) == 5.0
    assert (loop.next_s, loop.num_waiting) == (inf, 2)
    loop.abort("too long")
    assert loop.next_s == 5.0
    while loop.next_s < inf:
        loop.advance(inf)
    assert records[0].first_scheduled_s == 5.0
    outcome = loop.close()
    sojourns = 5.0 + records[0].e2e_s
    assert outcome.request_seconds == pytest.approx(sojourns)


@both_paths
def test_first_tokens_and_counts_can_be_asked_for(make: Make) -> None:
    config = SchedulerConfig(300, max_num_seqs=2, async_scheduling=False)
    records: list[RequestRecord] = []
    loop: ReplicaLoop = make(config, records.append)
    assert loop.next_s == inf
    for i in range(3):
        loop.submit(Request(f"r{i}", 1.0, 40, 10))
    assert (loop.next_s, loop.num_waiting, loop.num_running) == (1.0, 3, 0)
    assert loop.first_token_s("r0") is None
    loop.advance(1.02)
    assert (loop.num_waiting, loop.num_running, loop.num_used_blocks) == (1, 2, 6)
    first = loop.first_token_s("r0")
    assert first is not None
    assert loop.first_token_s("r2") is None
    while loop.next_s < inf:
        loop.advance(inf)
    assert records[0].first_token_s == first
    assert loop.first_token_s("r0") is None
    assert not loop.abort("r0")


@both_paths
def test_submitting_what_cannot_be(make: Make) -> None:
    loop = make(SchedulerConfig(11), lambda _: None)
    assert loop.submit(Request("long", 0.0, 900, 5)) == "needs 57 KV blocks, the pool has 10"
    loop.submit(Request("a", 1.0, 9, 5))
    with pytest.raises(ValueError, match="here already"):
        loop.submit(Request("a", 1.0, 9, 5))
    with pytest.raises(ValueError, match="before its predecessor"):
        loop.submit(Request("b", 0.5, 9, 5))
    assert loop.close().unfinished == ("a",)
    assert loop.close().end == "stopped"


def test_a_late_request_acts_on_the_next_pass() -> None:
    """The router may take its time: an idle replica does not go back in time for it."""
    records: list[RequestRecord] = []
    loop = open_replica(SchedulerConfig(300), AFFINE, records.append)
    loop.advance(3.0)
    loop.submit(Request("r", 2.0, 40, 3))
    assert loop.next_s == 3.0
    loop.advance(inf)
    assert (records[0].arrival_s, records[0].first_scheduled_s) == (2.0, 3.0)


def test_the_front_door_chooses_the_path() -> None:
    plain, drafts = SchedulerConfig(300), SchedulerConfig(300, num_speculative_tokens=2)
    assert isinstance(open_replica(plain, AFFINE, print), Replica)
    assert isinstance(open_replica(drafts, AFFINE, print), DetailedReplica)
    assert simulate([], drafts, AFFINE).end == "finished"
