"""What must hold of any simulation: queueing theory, conservation, limits, hostile traffic."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import pytest
from fuzz_simulator import CheckedRecorder
from random_scenarios import scenario as random_scenario

from capplan.performance.batch import Chunk
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.simulator import content
from capplan.simulator.config import KvGroup, SchedulerConfig
from capplan.simulator.content import KeyBook
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.model_step_time import ModelStepTime
from capplan.simulator.requests import Outcome, Request
from capplan.simulator.simulate import simulate
from capplan.simulator.step_time import AffineStepTime, HostTime
from capplan.simulator.traces import config_of, replay, requests_of
from capplan.specs.catalogue import load_hardware, load_model

AFFINE = AffineStepTime(0.0071, 1.3e-5, 7.1e-8)
H100 = load_hardware("h100-sxm-80gb").spec
both_modes = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def config(**options: object) -> SchedulerConfig:
    return SchedulerConfig(**({"num_gpu_blocks": 4000, "max_num_seqs": 64} | options))  # type: ignore[arg-type]


def poisson(
    number: int, rate_per_s: float, prompt: int = 200, output: int = 40, seed: int = 1
) -> list[Request]:
    """Exponential gaps from one stream, so that a higher rate is the same traffic, faster."""
    rng, clock, requests = random.Random(seed), 0.0, []
    lengths = random.Random(seed + 1)
    for index in range(number):
        clock += rng.expovariate(1.0) / rate_per_s
        tokens = max(1, round(lengths.gauss(prompt, prompt / 4)))
        requests.append(Request(f"r{index}", clock, tokens, 1 + lengths.randrange(2 * output)))
    return requests


def run(requests: list[Request], **options: object) -> Outcome:
    return simulate(requests, config(**options), AFFINE)


# Conservation.


@both_modes
@pytest.mark.parametrize("rate", [2.0, 20.0, 60.0])
def test_littles_identity(asynchronous: bool, rate: float) -> None:
    """The area under the number in the engine is the sum of the times in it."""
    outcome = run(poisson(2000, rate), async_scheduling=asynchronous, num_gpu_blocks=700)
    sojourns = sum(record.e2e_s for record in outcome.records)
    assert len(outcome.records) == 2000
    assert outcome.request_seconds == pytest.approx(sojourns, rel=1e-9)


def test_littles_identity_over_random_scenarios() -> None:
    for seed in range(300):
        case = random_scenario(seed)
        outcome = simulate(
            requests_of(case["requests"]), config_of(case), AFFINE, reject_impossible=True
        )
        sojourns = sum(record.e2e_s for record in outcome.records)
        if outcome.end == "finished":
            assert outcome.request_seconds == pytest.approx(sojourns, rel=1e-9, abs=1e-12), seed


@both_modes
def test_tokens_and_blocks_are_conserved_after_every_step(asynchronous: bool) -> None:
    for caching in (False, True):
        case = {
            "mode": "async" if asynchronous else "sync",
            "config": {"num_gpu_blocks": 120, "max_num_seqs": 32, "max_num_batched_tokens": 256}
            | {"enable_prefix_caching": caching},
            "step_time": {"a": 2.0**-7, "b": 2.0**-16, "c": 2.0**-24},
            "requests": [
                {
                    "id": r.id,
                    "arrival_s": r.arrival_s,
                    "prompt_len": r.prompt_tokens,
                    "output_len": r.output_tokens,
                    "prefix_id": f"s{index % 3}",
                    "prefix_len": min(100, r.prompt_tokens),
                }
                for index, r in enumerate(poisson(150, 30.0))
            ],
        }
        recorder = CheckedRecorder(asynchronous=asynchronous)  # asserts in every pass
        outcome = replay(case, recorder=recorder)
        assert outcome["summary"]["preemptions"] > 10
        assert recorder.steps[-1]["free_end"] == 119
        delivered = sum(r["output_tokens"] for r in outcome["per_request"])
        assert delivered == sum(entry["output_len"] for entry in case["requests"])  # type: ignore[attr-defined, index]


def test_tokens_scheduled_are_tokens_needed_without_preemption() -> None:
    requests = poisson(500, 20.0)
    outcome = run(requests, enable_prefix_caching=False)
    assert outcome.num_preemptions == 0
    needed = sum(r.prompt_tokens + r.output_tokens - 1 for r in requests)
    assert outcome.scheduled_tokens == needed


# Queueing theory.


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_sequence_with_fixed_lengths_is_an_md1_queue(load: float) -> None:
    """Pollaczek-Khinchine: the mean wait is load * service / (2 (1 - load))."""
    service_s = 0.01
    rng, clock, requests = random.Random(7), 0.0, []
    for index in range(60_000):
        clock += rng.expovariate(load / service_s)
        requests.append(Request(f"r{index}", clock, 16, 1))
    step = AffineStepTime(service_s, 0.0, 0.0)
    settings = config(max_num_seqs=1, async_scheduling=False, enable_prefix_caching=False)
    outcome = simulate(requests, settings, step)
    wait_s = fmean(record.ttft_s - service_s for record in outcome.records)
    assert wait_s == pytest.approx(load * service_s / (2 * (1 - load)), rel=0.05)
    assert outcome.busy_s / outcome.end_s == pytest.approx(load, rel=0.02)


def test_several_sequences_with_fixed_lengths_are_an_mdc_queue() -> None:
    """Steps that cost the same whoever is in them: servers with a fixed service time.

    In an M/D/c queue, departures are in order: request n starts when n - c has left. The engine
    starts at step ends, which delays a start by less than one step per start before it.
    """
    step_s, steps, servers = 1e-4, 400, 4
    rng, clock, requests = random.Random(3), 0.0, []
    for index in range(4000):
        clock += rng.expovariate(0.7 * servers / (steps * step_s))
        requests.append(Request(f"r{index}", clock, 16, steps))
    settings = config(max_num_seqs=servers, async_scheduling=False, enable_prefix_caching=False)
    outcome = simulate(requests, settings, AffineStepTime(step_s, 0.0, 0.0))
    leaves: deque[float] = deque([0.0] * servers, maxlen=servers)
    waits = []
    for request in requests:
        begin = max(request.arrival_s, leaves[0])
        leaves.append(begin + steps * step_s)
        waits.append(begin - request.arrival_s)
    waited = fmean(record.first_scheduled_s - record.arrival_s for record in outcome.records)
    assert waited == pytest.approx(fmean(waits), rel=0.1)
    assert waited >= fmean(waits)


@both_modes
def test_zero_load_is_the_bare_step_times(asynchronous: bool) -> None:
    requests = [Request(f"r{i}", 100.0 * i, 500 + i, 20) for i in range(20)]
    outcome = run(requests, async_scheduling=asynchronous)
    for request, record in zip(requests, outcome.records, strict=True):
        prompt = request.prompt_tokens
        prefill_s = AFFINE.mixed(0, 0, [(prompt, 0)])
        contexts = range(prompt + 1, prompt + request.output_tokens)
        decode_s = sum(AFFINE.a + AFFINE.b + AFFINE.c * context for context in contexts)
        assert record.ttft_s == pytest.approx(prefill_s, rel=1e-9)
        assert record.e2e_s == pytest.approx(prefill_s + decode_s, rel=1e-9)


@both_modes
def test_chunked_equals_unchunked_when_the_budget_covers_the_prompt(asynchronous: bool) -> None:
    requests = poisson(300, 3.0, output=10)
    outcomes = [
        run(
            requests,
            enable_chunked_prefill=chunked,
            max_num_batched_tokens=100_000,
            async_scheduling=asynchronous,
        )
        for chunked in (False, True)
    ]
    assert outcomes[0] == outcomes[1]


@both_modes
def test_determinism(asynchronous: bool) -> None:
    outcomes = [
        run(poisson(800, 40.0), async_scheduling=asynchronous, num_gpu_blocks=500) for _ in range(2)
    ]
    assert outcomes[0] == outcomes[1]
    assert repr(outcomes[0]) == repr(outcomes[1])


@both_modes
def test_slower_with_a_higher_rate(asynchronous: bool) -> None:
    """Common random numbers: the same requests, closer together."""
    means = []
    for rate in (2.0, 5.0, 10.0, 20.0, 40.0, 80.0):
        records = run(poisson(1500, rate), async_scheduling=asynchronous).records
        means.append((fmean(r.ttft_s for r in records), fmean(r.e2e_s for r in records)))
    assert all(low < high for low, high in pairwise(e2e for _, e2e in means))
    assert all(low < high for low, high in pairwise(ttft for ttft, _ in means[1:]))


# Hostile traffic.


def test_what_never_fits_is_rejected_with_the_reason() -> None:
    requests = [
        Request("fits", 0.0, 100, 10),
        Request("longer than the pool", 0.0, 900, 10),
        Request("outgrows the pool", 0.0, 100, 900),
        Request("longer than the model", 0.0, 5000, 10),
        Request("empty", 0.0, 0, 10),
        Request("also fits", 0.1, 100, 10),
    ]
    outcome = run(requests, num_gpu_blocks=41, max_model_len=4096)
    assert [record.id for record in outcome.records] == ["fits", "also fits"]
    assert outcome.end == "finished"
    reasons = {rejection.id: rejection.reason for rejection in outcome.rejected}
    assert reasons["longer than the pool"] == "needs 57 KV blocks, the pool has 40"
    assert reasons["outgrows the pool"] == "needs 63 KV blocks, the pool has 40"
    assert reasons["longer than the model"] == "prompt of 5000 tokens, max_model_len is 4096"
    assert "at least one prompt token" in reasons["empty"]


def test_a_prompt_that_no_step_can_hold_is_rejected_without_chunking() -> None:
    options = {"enable_chunked_prefill": False, "max_num_batched_tokens": 256}
    outcome = run([Request("long", 0.0, 300, 5), Request("short", 0.0, 30, 5)], **options)
    assert [rejection.id for rejection in outcome.rejected] == ["long"]
    assert "chunked prefill is off" in outcome.rejected[0].reason


def test_what_is_not_rejected_stalls_and_says_so() -> None:
    """As the bare scheduler does: the head of the queue blocks everybody for ever."""
    requests = [Request("long", 0.0, 900, 5), Request("short", 0.0, 30, 5)]
    settings = config(num_gpu_blocks=41)
    outcome = simulate(requests, settings, AFFINE, reject_impossible=False)
    assert outcome.end == "stalled"
    assert outcome.unfinished == ("long", "short")


@both_modes
def test_all_at_once(asynchronous: bool) -> None:
    requests = [Request(f"r{i}", 0.0, 50 + i % 7, 1 + i % 90) for i in range(3000)]
    outcome = run(requests, num_gpu_blocks=60, async_scheduling=asynchronous)
    assert len(outcome.records) == 3000
    assert outcome.num_preemptions > 100


@both_modes
def test_one_token(asynchronous: bool) -> None:
    requests = [Request(f"r{i}", 0.01 * (i // 3), 1, 1) for i in range(300)]
    outcome = run(requests, num_gpu_blocks=3, async_scheduling=asynchronous)
    assert len(outcome.records) == 300
    assert all(record.tpot_s is None for record in outcome.records)


def test_two_requests_that_preempt_each_other_for_ever_end() -> None:
    """Real behaviour of the rules (priority, no full-prompt check, a small threshold)."""
    found = set()
    for seed in range(3000):
        case = random_scenario(seed)
        settings = case["config"]
        if settings["policy"] == "priority" and not settings["scheduler_reserve_full_isl"]:
            case["config"] |= {"long_prefill_token_threshold": 1, "num_gpu_blocks": 8}
            outcome = simulate(requests_of(case["requests"]), config_of(case), AFFINE)
            found.add(outcome.end)
            if "livelock" in found:
                break
    assert "livelock" in found


def test_requests_must_come_in_order_of_arrival() -> None:
    with pytest.raises(ValueError, match="arrives before its predecessor"):
        run([Request("a", 1.0, 5, 5), Request("b", 0.5, 5, 5)])


def test_settings_without_room_are_refused() -> None:
    with pytest.raises(ValueError, match="block_size is 0"):
        config(block_size=0)
    with pytest.raises(ValueError, match="placeholder"):
        config(num_gpu_blocks=1)


def test_no_requests() -> None:
    outcome = run([])
    assert (outcome.end, outcome.num_steps, outcome.end_s) == ("finished", 0, 0.0)


# Step time.

DENSE = [("llama-3.1-8b", 1), ("llama-3.1-8b", 4), ("mixtral-8x7b", 2), ("deepseek-v2-lite", 1)]


def step_model(name: str, tp: int = 1) -> StepModel:
    rates = derated_rates(H100, tp)
    return StepModel(load_model(name).spec, H100, rates, tp=tp, kv_dtype="bf16")


@pytest.mark.parametrize(("name", "tp"), DENSE)
def test_kept_parts_equal_the_performance_model(name: str, tp: int) -> None:
    model = step_model(name, tp)
    quick, rng = ModelStepTime(model), random.Random(5)
    for _ in range(400):
        decodes = rng.choice([0, 1, 7, 60, 300])
        context = decodes * rng.randint(1, 5000)
        chunks = [(rng.randint(1, 900), rng.randint(0, 4000)) for _ in range(rng.randint(0, 3))]
        if chunks:
            parts = [Chunk(*chunk) for chunk in chunks]
            want = model.mixed(decodes, {None: context}, parts).total_s
            assert quick.mixed(decodes, context, chunks) == pytest.approx(want, rel=1e-6)
        elif decodes:
            intercept, slope, limit = quick.line(decodes, context)
            assert context < limit
            want = model.decode(decodes, {None: context}).total_s
            assert intercept + slope * context == pytest.approx(want, rel=1e-6)


@both_modes
def test_cpu_time_is_added_or_hidden(asynchronous: bool) -> None:
    """Half as long as a step: hidden when asynchronous. Twice as long: the step takes as long."""
    step = AffineStepTime(0.01, 0.0, 0.0)
    request = [Request("r", 0.0, 16, 11)]
    settings = config(async_scheduling=asynchronous)
    for cpu_s, sync_s, async_s in ((0.005, 0.015, 0.01), (0.02, 0.03, 0.02)):
        outcome = simulate(request, settings, step, cpu_s_per_step=cpu_s)
        each = async_s if asynchronous else sync_s
        assert outcome.records[0].e2e_s == pytest.approx(11 * each)


def test_cpu_time_is_passed_by_a_growing_context() -> None:
    """Hidden only until the step itself takes longer."""
    step = HostTime(AffineStepTime(0.01, 0.0, 1e-5), 0.02, asynchronous=True)
    assert step.line(1, 100) == (0.02, 0.0, pytest.approx(1000.0))
    assert step.line(1, 1001)[1] == 1e-5
    outcome = simulate([Request("r", 0.0, 900, 300)], config(), step)
    contexts = range(900, 1200)
    assert outcome.end_s == pytest.approx(sum(max(0.02, 0.01 + 1e-5 * c) for c in contexts))


def test_a_stream_is_read_one_request_ahead() -> None:
    """Requests may be made while they are consumed; records go to the sink."""
    made, left = [0], [0]

    def stream() -> object:
        for request in poisson(2000, 10.0):
            made[0] += 1
            yield request

    def sink(_: object) -> None:
        left[0] += 1
        assert made[0] - left[0] < 100

    outcome = simulate(stream(), config(), AFFINE, on_finish=sink)  # type: ignore[arg-type]
    assert outcome.records == ()
    assert left[0] == 2000


def test_forgetting_what_nobody_can_ask_for_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers of blocks that are neither cached nor anybody's, nor in front of such a block."""
    forgotten = []
    forget = KeyBook.forget

    def counted(book: KeyBook, alive: set[Hashable]) -> None:
        before = len(book)
        forget(book, alive)
        forgotten.append(before - len(book))
        book.limit = 3

    def outcomes() -> list[object]:
        cases = [random_scenario(seed) for seed in range(250)]
        for case in cases:
            case["config"]["enable_prefix_caching"] = True
        return [simulate(requests_of(c["requests"]), config_of(c), AFFINE) for c in cases]

    expected = outcomes()
    monkeypatch.setattr(content, "MAX_NUMBERS", 3)
    monkeypatch.setattr(KeyBook, "forget", counted)
    assert outcomes() == expected
    assert sum(forgotten) > 100


def test_conversations_for_ever_need_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_NUMBERS", 2000)
    turns = []
    for talk in range(600):
        first = Request(f"{talk}.0", 1.0 * talk, 100, 60, reused=True)
        history = (first.own_segment,)
        second = Request(f"{talk}.1", 1.0 * talk + 0.9, 200, 60, prefix=history, reused=True)
        turns += [first, second]
    replica = Replica(config(num_gpu_blocks=200), AFFINE, lambda _: None)
    assert replica.run(turns).end == "finished"
    assert replica.cache is not None
    assert len(replica.cache.book) < 3000  # of 9,600 ever made


GROUPS = {
    "sliding": (KvGroup("sliding", 8, 20), KvGroup("full", 8)),
    "two windows": (KvGroup("sliding", 8, 20), KvGroup("sliding", 8, 50), KvGroup("full", 8)),
    "state": (KvGroup("mamba", 8), KvGroup("mamba", 8), KvGroup("full", 8)),
}


@pytest.mark.parametrize("kind", [*GROUPS, "drafts"])
def test_hybrid_and_speculative_runs_give_every_block_back(kind: str) -> None:
    """Whatever happens on the way: preemptions, hits, rejected drafts, stop tokens."""
    preemptions = 0
    for seed in range(120):
        case = random_scenario(seed)
        case["config"] |= {"block_size": 8, "num_gpu_blocks": 60, "max_num_batched_tokens": 64}
        case["config"] |= {"long_prefill_token_threshold": 0, "max_model_len": 400}
        case["config"]["long_prefill_token_threshold_adaptive"] = False
        options: dict[str, object] = {"kv_groups": GROUPS.get(kind, ())}
        if kind == "state":
            options |= {"mamba_cache_mode": "align", "prefix_cache_retention_interval": seed % 3}
        if kind == "drafts":
            options |= {"num_speculative_tokens": 3, "num_lookahead_tokens": 3 * (seed % 2)}
            for entry in case["requests"]:
                entry.pop("max_tokens", None)
                entry["accept"] = [seed % 4, 3, 0]
        settings = replace(config_of(case), **options)  # type: ignore[arg-type]
        replica = DetailedReplica(settings, AFFINE, lambda _: None)
        outcome = replica.run(requests_of(case["requests"]))
        preemptions += outcome.num_preemptions
        if outcome.end == "finished":
            assert len(replica.scheduler.manager.pool.free) == settings.usable_blocks, seed
    assert preemptions > 0
