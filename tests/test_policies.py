"""The other schedulers: against a naive replica, the exact vLLM core, and closed forms."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
import reference_policies
from hypothesis import given, settings
from hypothesis import strategies as st
from test_simulator_windows import Windowed

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.config import KvAllocation, LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import (
    ChunkedPrefill,
    DecodeFirst,
    Orca,
    PrefillFirst,
    StaticBatching,
)
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.step_time import AffineStepTime
from capplan.simulator.watch import Watch

DYADIC = AffineStepTime(2.0**-7, 2.0**-16, 2.0**-24)
TEXTBOOK: dict[str, Callable[[], Policy]] = {
    "static": StaticBatching,
    "decode-first": DecodeFirst,
    "orca": Orca,
    "prefill-first": PrefillFirst,
    "chunked": ChunkedPrefill,
}
ENGINES: dict[str, Callable[[], Policy]] = {
    "tensorrt-llm": TensorRtLlm,
    "tensorrt-llm, chunked": lambda: TensorRtLlm(enable_chunked_context=True),
    "tensorrt-llm, waits": lambda: TensorRtLlm(
        batch_wait_timeout_iters=5, batch_wait_max_tokens_ratio=0.8
    ),
    "sglang": lambda: Sglang(chunked_prefill_size=64, max_prefill_tokens=128),
    "sglang, mixed": lambda: Sglang(chunked_prefill_size=128, enable_mixed_chunk=True),
    "sglang, ignore eos": lambda: Sglang(ignore_eos=True),
    "sglang, seldom reads": lambda: Sglang(scheduler_recv_interval=7),
}
RESERVED: tuple[KvAllocation, ...] = ("exact", "power_of_two", "max_tokens", "max_model_len")


class Told:
    """A watch that keeps every gap and counts tokens."""

    def __init__(self) -> None:
        self.all_gaps: list[float] = []
        self.tokens = 0
        self.busy_s = 0.0

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        assert start_s >= 0
        self.tokens += num_decodes + prefill_tokens
        self.busy_s += step_s

    def gaps(self, gap_s: float, count: int) -> None:
        assert count > 0
        self.all_gaps += [gap_s] * count

    def stretch(
        self, start_s: float, num_steps: int, num_decodes: int, context: int, base_s: float,
        slope_s: float,
    ) -> None:  # fmt: skip
        for k in range(num_steps):
            step_s = base_s + slope_s * (context + k * num_decodes)
            self.step(start_s, step_s, num_decodes, 0)
            self.gaps(step_s, num_decodes)

    def load(self, time_s: float, running: int, waiting: int, used: int) -> None:
        assert time_s >= 0
        assert min(running, waiting, used) >= 0


def run(
    config: LoopConfig,
    policy: Policy,
    requests: list[Request],
    *,
    watch: Watch | None = None,
    pauses: list[float] | None = None,
) -> tuple[PolicyReplica, Outcome, list[RequestRecord]]:
    """All requests submitted before the first pass, or at the pause before each arrival."""
    records: list[RequestRecord] = []
    replica = PolicyReplica(config, policy, DYADIC, records.append, watch=watch)
    for until_s in [*(pauses or []), inf]:
        left = [r for r in requests if r.arrival_s <= until_s]
        requests = requests[len(left) :]
        for request in left:
            assert replica.submit(request) is None
        while replica.next_s < until_s:
            replica.advance(until_s)
    return replica, replica.close(), records


@st.composite
def traffic(draw: st.DrawFn) -> list[Request]:
    rng = random.Random(draw(st.integers(0, 10**9)))
    clock, requests = 0.0, []
    rate = rng.choice([5, 20, 100])
    for index in range(draw(st.integers(1, 30))):
        clock += rng.choice([0.0, 0.0, rng.expovariate(rate)])
        output = rng.randint(1, 60)
        limit = rng.choice([None, output, output + 30])
        requests.append(Request(str(index), clock, rng.randint(1, 120), output, limit))
    return requests


@st.composite
def configs(draw: st.DrawFn, kinds: tuple[KvAllocation, ...]) -> LoopConfig:
    kind = draw(st.sampled_from(kinds))
    return LoopConfig(
        num_blocks=draw(st.sampled_from([26, 30, 60, 1000])),
        block_size=8,
        max_num_seqs=draw(st.sampled_from([1, 3, 64])),
        max_num_batched_tokens=draw(st.sampled_from([200, 333])),
        max_model_len=200,
        kv_allocation=kind,
        watermark=draw(st.sampled_from([0.0, 0.05])),
        async_scheduling=draw(st.booleans()),
    )


def synchronous(config: LoopConfig) -> LoopConfig:
    return replace(config, async_scheduling=False)


@pytest.mark.parametrize("name", TEXTBOOK)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_token_comes_when_the_naive_replica_says(name: str, data: st.DataObject) -> None:
    kinds = RESERVED if name == "static" else (*RESERVED, "paged", "paged", "paged")
    config, requests = synchronous(data.draw(configs(kinds))), data.draw(traffic())
    expected, wasted = reference_policies.run(name, config, DYADIC, requests)
    told = Told()
    replica, _, records = run(config, TEXTBOOK[name](), requests, watch=told)
    found = {r.id: (r.first_scheduled_s, r.first_token_s, r.finish_s, r.num_preemptions)
             for r in records}  # fmt: skip
    assert found == {
        key: (scheduled_s, times[0], times[-1], evictions)
        for key, (scheduled_s, times, evictions) in expected.items()
    }
    gaps = [b - a for _, times, _ in expected.values() for a, b in pairwise(times)]
    assert sorted(told.all_gaps) == pytest.approx(sorted(gaps), rel=1e-9, abs=1e-12)
    assert replica.wasted_slot_fraction == pytest.approx(wasted)


@pytest.mark.parametrize("name", [*TEXTBOOK, *ENGINES])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nothing_is_lost(name: str, data: st.DataObject) -> None:
    """Every request finishes with all of its tokens, every block comes back, time goes on; where
    the loop pauses changes nothing."""
    kinds = RESERVED if name == "static" else (*RESERVED, "paged", "paged")
    config, requests = data.draw(configs(kinds)), data.draw(traffic())
    config = synchronous(config) if name == "static" else config
    make = (TEXTBOOK | ENGINES)[name]
    told = Told()
    replica, outcome, records = run(config, make(), requests, watch=told)
    assert sorted(r.id for r in records) == sorted(r.id for r in requests)
    assert (replica.num_running, replica.num_waiting, replica.num_used_blocks) == (0, 0, 0)
    assert (replica.num_decodes, replica.computed, sum(replica.opening)) == (0, 0, 0)
    assert replica.announced_to_come == 0
    tokens = {r.id: r.output_tokens for r in requests}
    for record in records:
        assert record.output_tokens == tokens[record.id]
        assert record.arrival_s <= record.first_scheduled_s < record.first_token_s
        assert record.first_token_s <= record.finish_s <= outcome.end_s
    assert [r.finish_s for r in records] == sorted(r.finish_s for r in records)
    assert len(told.all_gaps) == sum(tokens.values()) - len(records)
    waits = sum(r.finish_s - r.first_token_s for r in records)
    assert sum(told.all_gaps) == pytest.approx(waits, rel=1e-9, abs=1e-12)
    assert told.busy_s == pytest.approx(outcome.busy_s)
    if not outcome.num_preemptions and name != "static":
        computed = sum(r.prompt_tokens + r.output_tokens - 1 for r in requests)
        assert told.tokens == computed == outcome.scheduled_tokens
    pauses = [r.arrival_s for r in requests] + [outcome.end_s / 3, outcome.end_s / 2]
    _, again, others = run(config, make(), requests, pauses=sorted(pauses))
    assert others == records
    assert again.num_steps == outcome.num_steps


@settings(max_examples=150, deadline=None)
@given(config=configs(("paged",)), requests=traffic(), budget=st.sampled_from([40, 64, 4000]))
def test_chunked_prefill_is_what_the_exact_core_does(
    config: LoopConfig, requests: list[Request], budget: int
) -> None:
    """Step for step, with evictions too; those only where one step carries a whole prompt (this
    loop takes a prompt's blocks at once) and no step is under way (vLLM may evict a request
    whose last token is)."""
    tight = budget == 4000 and not config.async_scheduling
    config = replace(
        config, watermark=0.0, max_num_batched_tokens=budget,
        num_blocks=config.num_blocks if tight else 2000, max_num_seqs=min(config.max_num_seqs, 40),
    )  # fmt: skip
    requests = [r._replace(max_tokens=None) for r in requests]
    expected: list[RequestRecord] = []
    engine = SchedulerConfig(
        num_gpu_blocks=config.num_blocks + 1,
        block_size=config.block_size,
        max_num_seqs=config.max_num_seqs,
        max_num_batched_tokens=budget,
        max_model_len=config.max_model_len,
        enable_prefix_caching=False,
        async_scheduling=config.async_scheduling,
    )
    core = Replica(engine, DYADIC, expected.append).run(requests)
    _, outcome, records = run(config, ChunkedPrefill(), requests)
    assert records == expected
    assert outcome.scheduled_tokens == core.scheduled_tokens
    assert outcome.num_steps == core.num_steps - core.num_empty_passes
    assert outcome.num_preemptions == core.num_preemptions
    assert outcome.max_running == core.max_running


@settings(max_examples=60, deadline=None)
@given(config=configs(("paged",)), requests=traffic())
def test_attention_windows_are_summed_as_the_exact_core_does(
    config: LoopConfig, requests: list[Request]
) -> None:
    config = replace(config, watermark=0.0, async_scheduling=False)
    requests = [r._replace(max_tokens=None) for r in requests]
    windowed = Windowed((24, 50))
    engine = SchedulerConfig(
        num_gpu_blocks=config.num_blocks + 1,
        block_size=config.block_size,
        max_num_seqs=config.max_num_seqs,
        max_num_batched_tokens=4000,
        max_model_len=config.max_model_len,
        enable_prefix_caching=False,
        async_scheduling=False,
    )
    expected: list[RequestRecord] = []
    Replica(engine, windowed, expected.append).run(requests)
    records: list[RequestRecord] = []
    config = replace(config, max_num_batched_tokens=4000)
    loop = PolicyReplica(config, ChunkedPrefill(), windowed, records.append)
    for request in requests:
        assert loop.submit(request) is None
    while loop.next_s < inf:
        loop.advance(inf)
    assert records == expected


def test_it_is_a_replica_loop() -> None:
    loop: ReplicaLoop = PolicyReplica(LoopConfig(10), Orca(), DYADIC, print)
    assert loop.next_s == inf
    assert loop.advance(5.0) == 5.0
