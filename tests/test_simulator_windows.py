"""Attention windows by counters: the clock of asking for every context in every step."""

from __future__ import annotations

import random
from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import inf

import pytest
from random_scenarios import scenario as random_scenario

from capplan.performance.batch import Chunk
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.simulator.config import KvGroup, SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.model_step_time import ModelStepTime
from capplan.simulator.one_group import approximation_by_one_group
from capplan.simulator.recorder import Recorder
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.simulate import simulate
from capplan.simulator.step_time import ChunkSums, HostTime, WindowSum
from capplan.simulator.traces import config_of, requests_of
from capplan.specs.catalogue import load_hardware, load_model

H100 = load_hardware("h100-sxm-80gb").spec


@dataclass(frozen=True)
class Windowed:
    """Dyadic coefficients, and stretches as they come: every sum below is exact."""

    windows: tuple[int, ...]
    a: float = 2.0**-7
    b: float = 2.0**-16
    c: float = 2.0**-24
    w: float = 2.0**-20

    def line(
        self, num_decodes: int, context_tokens: int, windows: Items[WindowSum] = ()
    ) -> tuple[float, float, float]:
        base = self.a + self.b * num_decodes + self.w * sum(reads for reads, _ in windows)
        growing = sum(growing for _, growing in windows)
        # Only the next step is a straight line in the context alone, if any window grows.
        return base, self.c, context_tokens + 1 if growing else inf

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),
    ) -> float:
        tokens, context = num_decodes, context_tokens
        reads = sum(reads for reads, _ in windows)
        for chunk, before in chunks:
            tokens += chunk
            context += before + chunk
            reads += sum(min(window, before + chunk) for window in self.windows)
        return self.a + self.b * tokens + self.c * context + self.w * reads


# Scenarios in which a decode gets nothing from a step: one in a thousand.
STARVED = (2632, 3514, 7223, 7367, 8300, 9703, 9802, 11287, 11454, 13286, 15141, 15313, 17142)


def ends(seed: int, windows: tuple[int, ...]) -> list[tuple[object, ...]]:
    """Of the counters and of the path by requests."""
    case, found = random_scenario(seed), []
    for make in (Replica, DetailedReplica):
        records: list[RequestRecord] = []
        replica = make(config_of(case), Windowed(windows), records.append)
        outcome = replica.run(requests_of(case["requests"]))
        found.append((outcome.end, outcome.end_s, outcome.num_steps, records))
    return found


def test_random_scenarios_have_the_clock_of_every_context() -> None:
    """Every time of every request, with `==`."""
    preempted = 0
    for seed in range(600):
        rng = random.Random(seed)
        counters, detailed = ends(seed, rng.choice([(7,), (40,), (1, 25, 90), (16, 130)]))
        if counters[0] != "livelock":
            assert counters == detailed, seed
        preempted += sum(record.num_preemptions for record in counters[3])  # type: ignore[attr-defined]
    assert preempted > 500


@pytest.mark.parametrize("seed", STARVED)
def test_decodes_that_a_step_passes_by(seed: int) -> None:
    for windows in [(3,), (9,), (15,), (30,), (60,), (3, 9, 15, 30, 60)]:
        counters, detailed = ends(seed, windows)
        assert counters == detailed, windows


def test_an_open_run_is_the_closed_run() -> None:
    """Bit for bit also where a model's segments are not dyadic, whatever the horizons."""
    step_time = ModelStepTime(step_model("gemma-3-1b"))
    for seed in range(60):
        case, rng = random_scenario(seed), random.Random(seed)
        config, requests = config_of(case), requests_of(case["requests"])
        requests = [r._replace(prompt_tokens=r.prompt_tokens + 450) for r in requests]
        config = SchedulerConfig(5000, max_num_seqs=config.max_num_seqs)
        expected: list[RequestRecord] = []
        closed = Replica(config, step_time, expected.append).run(requests)
        records: list[RequestRecord] = []
        loop = Replica(config, step_time, records.append)
        for request in requests:
            loop.submit(request)
        while loop.next_s < inf:
            loop.advance(loop.next_s + rng.expovariate(100.0))
        assert (loop.close(), records) == (closed, expected), seed


def step_model(name: str) -> StepModel:
    return StepModel(load_model(name).spec, H100, derated_rates(H100, 1), tp=1, kv_dtype="bf16")


@pytest.mark.parametrize("name", ["gemma-3-27b", "gpt-oss-20b", "mistral-7b-v0.1", "llama-3.1-8b"])
def test_the_step_time_is_that_of_the_performance_model(name: str) -> None:
    model = step_model(name)
    quick, rng = ModelStepTime(model), random.Random(5)
    for _ in range(200):
        contexts = [rng.randint(1, 6000) for _ in range(rng.choice([0, 1, 7, 60]))]
        chunks = [(rng.randint(1, 900), rng.randint(0, 4000)) for _ in range(rng.randint(0, 3))]
        reads = {w: float(sum(min(c, w or c) for c in contexts)) for w in model.windows}
        growing = {w: sum(c < w for c in contexts) for w in quick.windows}
        sums = [(int(reads[w]), growing[w]) for w in quick.windows]
        total = sum(contexts)
        if chunks:
            want = model.mixed(len(contexts), reads, [Chunk(*chunk) for chunk in chunks]).total_s
            got = quick.mixed(len(contexts), total, chunks, sums)
        elif contexts:
            want = model.decode(len(contexts), reads).total_s
            intercept, slope, limit = quick.line(len(contexts), total, sums)
            got = intercept + slope * total
            assert total < limit
        else:
            continue
        assert got == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("name", ["gemma-3-27b", "gpt-oss-20b", "mistral-7b-v0.1"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_clock_of_windowed_models(name: str, asynchronous: bool) -> None:
    """Counters against every context in every step, with the performance model as step time."""
    step_time = ModelStepTime(step_model(name))
    rng, clock, requests = random.Random(2), 0.0, []
    for index in range(60):
        clock += rng.expovariate(6.0)
        prompt = rng.choice([20, 100, 900, 4000])
        requests.append(Request(f"r{index}", clock, prompt, rng.randint(1, 400)))
    for time in (step_time, HostTime(step_time, 0.006, asynchronous=asynchronous)):
        config = SchedulerConfig(1500, async_scheduling=asynchronous, max_num_batched_tokens=600)
        finishes = []
        for make in (Replica, DetailedReplica):
            records: list[RequestRecord] = []
            make(config, time, records.append).run(requests)
            finishes.append({record.id: record.finish_s for record in records})
        assert finishes[0] == pytest.approx(finishes[1], rel=1e-9)


def test_one_request_reads_at_most_its_window() -> None:
    """By hand: gemma-3 reads at most 1,024 tokens in five layers of six."""
    model = step_model("gemma-3-27b")
    groups = (KvGroup("sliding", 16, 1024), KvGroup("full", 16))
    for prompt, kv_groups in ((3000, groups), (3000, ()), (1022, ())):
        settings = SchedulerConfig(
            4000, kv_groups=kv_groups, enable_prefix_caching=False, async_scheduling=False
        )
        requests = [Request("r", 0.0, prompt, 4)]
        outcome = simulate(requests, settings, ModelStepTime(model))
        prefill = model.mixed(0, {}, [Chunk(prompt)]).total_s
        decodes = [
            model.decode(1, {None: float(c), 1024: float(min(c, 1024))}).total_s
            for c in range(prompt + 1, prompt + 4)
        ]
        assert outcome.records[0].ttft_s == pytest.approx(prefill, rel=1e-6)
        assert outcome.records[0].e2e_s == pytest.approx(prefill + sum(decodes), rel=1e-6)


def test_sums_have_to_be_told() -> None:
    with pytest.raises(ValueError, match="zip"):
        ModelStepTime(step_model("gemma-3-27b")).line(1, 100)
    with pytest.raises(ValueError, match="without attention windows"):
        Replica(SchedulerConfig(9), Windowed((8,)), print, Recorder(asynchronous=True))


def test_one_group_in_place_of_several_holds_as_many_requests() -> None:
    """A pool of 1,000 blocks in two groups: 63 + 63 for 1,000 tokens, 250 + 65 for 4,000."""
    groups = (KvGroup("full", 16), KvGroup("sliding", 16, 1024))
    exact = SchedulerConfig(
        1001, kv_groups=groups, enable_prefix_caching=False, max_num_batched_tokens=256
    )
    one = approximation_by_one_group(exact, 1000)
    assert (one.kv_groups, one.usable_blocks, one.is_plain) == ((), 500, True)
    assert approximation_by_one_group(exact, 4000).usable_blocks == 1000 * 250 // (250 + 65)
    assert approximation_by_one_group(one, 1000) == one
    requests = [Request(f"r{i}", 0.0, 3900, 100) for i in range(12)]
    step_time = Windowed((1024,))
    runs = [
        simulate(requests, c, step_time) for c in (exact, approximation_by_one_group(exact, 4000))
    ]
    assert runs[0].max_running == runs[1].max_running == 3
    assert runs[0].end_s == pytest.approx(runs[1].end_s, rel=0.02)
