"""The textbook effects, from the mechanism: closed forms, and the documented rules of engines."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from test_policies import DYADIC, ENGINES, TEXTBOOK, Told, run

from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.multi_step import MultiStep
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.sglang import Sglang
from capplan.simulator.policies.tensorrt_llm import TensorRtLlm
from capplan.simulator.policies.textbook import ChunkedPrefill, Orca, PrefillFirst, StaticBatching
from capplan.simulator.requests import Request, RequestRecord

ROOMY = LoopConfig(num_blocks=100_000, max_num_batched_tokens=8192, max_model_len=8192)
RESERVING = replace(ROOMY, kv_allocation="max_tokens")


def config_for(name: str) -> LoopConfig:
    return RESERVING if name == "static" else ROOMY


def decode_s(num: int, context: int) -> float:
    base, slope, _ = DYADIC.line(num, context)
    return base + slope * context


def test_the_bubble_of_static_batching_is_one_minus_mean_over_longest() -> None:
    outputs = [16, 100, 256, 31, 400, 7, 64, 222]
    requests = [Request(str(i), 0.0, 10 + i, n) for i, n in enumerate(outputs)]
    replica, outcome, _ = run(RESERVING, StaticBatching(), requests)
    bubble = 1 - sum(outputs) / len(outputs) / max(outputs)
    assert replica.wasted_slot_fraction == pytest.approx(bubble, rel=1e-12)
    assert outcome.num_steps == max(outputs)
    assert replica.padding_tokens == sum(17 - (10 + i) for i in range(8))
    # Iteration level: who has finished gives his slot back.
    assert run(ROOMY, Orca(), requests)[0].wasted_slot_fraction == 0


def test_the_next_static_batch_starts_when_the_whole_one_is_done() -> None:
    requests = [Request(str(i), 0.0, 64, n) for i, n in enumerate([10, 200, 30, 40])]
    _, _, records = run(replace(RESERVING, max_num_seqs=2), StaticBatching(), requests)
    by_id = {r.id: r for r in records}
    assert by_id["2"].first_scheduled_s == by_id["1"].finish_s
    assert by_id["0"].finish_s < by_id["1"].finish_s  # tokens are streamed


@pytest.mark.parametrize("name", [*TEXTBOOK, *ENGINES])
def test_alone_a_request_takes_its_prefill_and_its_decodes(name: str) -> None:
    policy = (TEXTBOOK | ENGINES)[name]()
    _, _, (record,) = run(config_for(name), policy, [Request("a", 3.0, 50, 5)])
    assert record.first_scheduled_s == 3.0
    assert record.ttft_s == pytest.approx(DYADIC.mixed(0, 0, [(50, 0)]), rel=1e-12)
    decodes = sum(decode_s(1, context) for context in range(51, 55))
    assert record.finish_s - record.first_token_s == pytest.approx(decodes, rel=1e-12)


# A prompt of 4,096 tokens among 32 decodes.

LONG = Request("long", 0.5, 4096, 4)
CROWD = [Request(str(i), 0.0, 15, 200) for i in range(32)]


def among_decodes(policy: Policy, budget: int = 8192) -> tuple[Told, RequestRecord]:
    told = Told()
    config = replace(ROOMY, max_num_batched_tokens=budget)
    _, _, records = run(config, policy, [*CROWD, LONG], watch=told)
    return told, next(r for r in records if r.id == "long")


def context_at(record: RequestRecord) -> int:
    """Of the 32 decodes at the end of the step in which it is scheduled."""
    step, clock = 0, DYADIC.mixed(0, 0, [(15, 0)] * 32)
    while clock < record.first_scheduled_s - 1e-9:
        step += 1
        clock += decode_s(32, 32 * (15 + step))
    return 32 * (15 + step + 1)


def test_head_of_line_blocking_stalls_decodes_for_the_whole_prefill() -> None:
    told, record = among_decodes(Orca())
    context = context_at(record)
    together = DYADIC.mixed(32, context, [(4096, 0)])
    assert max(told.all_gaps) == pytest.approx(together)
    assert record.first_token_s - record.first_scheduled_s == pytest.approx(together)

    told, record = among_decodes(PrefillFirst())
    prefill = DYADIC.mixed(0, 0, [(4096, 0)])
    assert max(told.all_gaps) == pytest.approx(prefill + decode_s(33, context + 4097))
    # Every decode but the last steps' gaps: one gap of 32 requests, no more.
    assert sum(gap > prefill for gap in told.all_gaps) == 32


def test_a_token_budget_removes_it_and_the_long_prompt_pays() -> None:
    orca, whole = among_decodes(Orca())
    told, cut = among_decodes(ChunkedPrefill(), budget=512)
    steps, chunk = -(-4096 // (512 - 32)), 512 - 32
    last_context = context_at(cut) + 32 * (steps - 1)
    bound = DYADIC.mixed(32, last_context, [(chunk, 4096 - chunk)])
    assert max(told.all_gaps) <= bound < max(orca.all_gaps) / 3
    assert cut.first_scheduled_s == whole.first_scheduled_s
    assert cut.ttft_s > whole.ttft_s
    chunks = [min(chunk, 4096 - done) for done in range(0, 4096, chunk)]
    expected = sum(
        DYADIC.mixed(32, context_at(cut) + 32 * i, [(tokens, i * chunk)])
        for i, tokens in enumerate(chunks)
    )
    assert cut.first_token_s - cut.first_scheduled_s == pytest.approx(expected)


def test_prefill_first_favours_ttft_and_decode_first_favours_gaps() -> None:
    requests = [Request(str(i), 0.02 * i, 1000, 60) for i in range(60)]
    gaps, ttft = {}, {}
    for name in ("prefill-first", "decode-first", "orca"):
        told = Told()
        _, _, records = run(ROOMY, TEXTBOOK[name](), requests, watch=told)
        gaps[name] = sorted(told.all_gaps)[int(0.99 * len(told.all_gaps))]
        ttft[name] = sum(r.ttft_s for r in records) / len(records)
    assert ttft["prefill-first"] < ttft["orca"] < ttft["decode-first"]
    assert gaps["decode-first"] < gaps["orca"] < gaps["prefill-first"]


# KV allocation.


def test_paging_runs_more_requests_than_reservation() -> None:
    """Kwon et al.: (Max) < (Pow2) < (Oracle) < paged, by requests that fit."""
    requests = [Request(str(i), 0.0, 100, 90, 200) for i in range(100)]
    config = LoopConfig(num_blocks=200, max_num_seqs=100, max_model_len=1000)
    fits = {}
    for kind, tokens in (("max_model_len", 1000), ("max_tokens", 300), ("power_of_two", 228),
                         ("exact", 190), ("paged", 0)):  # fmt: skip
        reserving = replace(config, kv_allocation=kind)
        _, outcome, _ = run(reserving, Orca(), requests)
        fits[kind] = outcome.max_running
        if tokens:
            assert outcome.max_running == 200 // -(-tokens // 16)
            assert outcome.num_preemptions == 0
    assert list(fits.values()) == sorted(fits.values())
    assert fits["paged"] > fits["exact"]


# TensorRT-LLM.


def long_decode(*others: Request) -> list[Request]:
    return [Request("first", 0.0, 16, 400), *others]


def passes() -> list[float]:
    """When the passes of a lone decode of 16 + n tokens are."""
    times = [0.0, DYADIC.mixed(0, 0, [(16, 0)])]
    for step in range(1, 400):
        times.append(times[-1] + decode_s(1, 16 + step))
    return times


def test_batch_wait_holds_prompts_for_so_many_iterations() -> None:
    _, _, records = run(
        RESERVING,
        TensorRtLlm(batch_wait_timeout_iters=20, batch_wait_max_tokens_ratio=0.9),
        long_decode(Request("late", 0.3, 500, 3)),
    )
    late = next(r for r in records if r.id == "late")
    seen = next(i for i, at in enumerate(passes()) if at >= 0.3)
    assert late.first_scheduled_s == pytest.approx(passes()[seen + 20])


def test_batch_wait_ends_when_enough_tokens_wait() -> None:
    late = [Request(f"late {i}", 0.3 + 0.05 * i, 2500, 3) for i in range(4)]
    policy = TensorRtLlm(batch_wait_timeout_iters=300, batch_wait_max_tokens_ratio=0.9)
    _, _, records = run(RESERVING, policy, long_decode(*late))
    at = {r.id: r.first_scheduled_s for r in records}
    # 3 x 2,500 + 1 decode >= 0.9 x 8,192; a fourth would not fit the step.
    third = next(time for time in passes() if time >= 0.4)
    assert at["late 0"] == at["late 1"] == at["late 2"] == pytest.approx(third)
    assert at["late 3"] > third


def test_nothing_waits_where_nothing_runs() -> None:
    policy = TensorRtLlm(batch_wait_timeout_iters=300, batch_wait_max_tokens_ratio=0.9)
    _, _, (record,) = run(RESERVING, policy, [Request("a", 1.0, 10, 10)])
    assert record.first_scheduled_s == 1.0


def test_no_evict_reserves_prompt_and_announced_output_and_max_utilization_pauses() -> None:
    requests = [Request(str(i), 0.0, 160, 160) for i in range(40)]
    config = LoopConfig(num_blocks=100, kv_allocation="max_tokens", max_model_len=2000)
    _, kept, _ = run(config, TensorRtLlm(), requests)
    _, paused, _ = run(replace(config, kv_allocation="paged"), TensorRtLlm(), requests)
    assert (kept.num_preemptions, kept.max_running) == (0, 5)
    assert paused.num_preemptions > 0
    assert paused.max_running > 5


@pytest.mark.parametrize(("arrivals", "waited"), [((0.5,), 50), ((0.5, 0.5), 10)])
def test_attention_ranks_compute_prompts_together(arrivals: tuple[float, ...], waited: int) -> None:
    """Two ranks: one prompt alone waits for the timeout, two for others that may join."""
    first = [Request(f"first{i}", 0.0, 16, 400) for i in range(2)]
    late = [Request(f"late{i}", arrival_s, 100, 3) for i, arrival_s in enumerate(arrivals)]
    scheduled = {}
    for ranks in (1, 2):
        _, _, records = run(ROOMY, TensorRtLlm(adp_ranks=ranks), [*first, *late])
        scheduled[ranks] = next(r for r in records if r.id == "late0").first_scheduled_s
    step_s = decode_s(2, 2 * 80)
    assert (scheduled[2] - scheduled[1]) / step_s == pytest.approx(waited, abs=1)


def test_a_whole_prompt_waits_for_room_in_the_step_and_a_chunk_does_not() -> None:
    small = replace(RESERVING, max_num_batched_tokens=300)
    requests = [Request("a", 0.0, 200, 20), Request("b", 0.0, 200, 20)]
    at = {}
    for chunked in (False, True):
        _, _, records = run(small, TensorRtLlm(enable_chunked_context=chunked), requests)
        at[chunked] = {r.id: r.first_scheduled_s for r in records}
    assert at[False]["b"] > 0
    assert at[True]["b"] == 0


# vLLM V0 with --num-scheduler-steps.


@pytest.mark.parametrize("steps", [1, 9, 15])
def test_the_scheduler_runs_once_a_group_of_steps(steps: int) -> None:
    arrival_s = 0.5
    requests = long_decode(Request("late", arrival_s, 100, 3))
    _, _, records = run(ROOMY, MultiStep(steps), requests)
    late = next(r for r in records if r.id == "late")
    groups = passes()[1::steps]  # the first after the step of the prompt
    assert late.first_scheduled_s == pytest.approx(next(t for t in groups if t >= arrival_s))


# SGLang.


@pytest.mark.parametrize("interval", [1, 10, 30])
def test_new_requests_are_read_every_so_many_decode_steps(interval: int) -> None:
    arrival_s = 0.5
    policy = Sglang(scheduler_recv_interval=interval)
    _, _, records = run(ROOMY, policy, long_decode(Request("late", arrival_s, 100, 3)))
    late = next(r for r in records if r.id == "late")
    reads = passes()[1::interval]  # the first after the step of the prompt
    assert late.first_scheduled_s == pytest.approx(next(t for t in reads if t >= arrival_s))


def test_a_prompt_stalls_decodes_chunk_after_chunk() -> None:
    told, record = among_decodes(Sglang(chunked_prefill_size=1024))
    chunks = sum(DYADIC.mixed(0, 0, [(1024, before)]) for before in range(0, 4096, 1024))
    assert record.first_token_s - record.first_scheduled_s == pytest.approx(chunks)
    assert max(told.all_gaps) > chunks


def test_retraction_takes_the_fewest_outputs_and_admits_no_one_until_somebody_left() -> None:
    """112 tokens for two requests of 70: the younger goes, and waits at the end."""
    config = LoopConfig(num_blocks=112, block_size=1, max_model_len=90)
    requests = [
        Request("old", 0.0, 30, 40),
        Request("young", 0.05, 30, 40),
        Request("next", 0.06, 5, 5, 80),
    ]
    policy = Sglang(schedule_conservativeness=0.01)
    _, outcome, records = run(config, policy, requests)
    by_id = {r.id: r for r in records}
    assert outcome.num_preemptions == 1
    assert by_id["young"].num_preemptions == 1
    assert by_id["old"].num_preemptions == 0


def test_conservative_admission_retracts_less() -> None:
    config = LoopConfig(num_blocks=3000, block_size=1, max_model_len=1000, max_num_seqs=64)
    requests = [Request(str(i), 0.001 * i, 100, 200) for i in range(60)]
    counts = [
        run(config, Sglang(schedule_conservativeness=c), requests)[1].num_preemptions
        for c in (0.1, 1.0, 10.0)
    ]
    assert counts[0] >= counts[1] >= counts[2]
    assert counts[0] > counts[2]
    assert run(config, Sglang(ignore_eos=True), requests)[1].num_preemptions == 0


@pytest.mark.parametrize("name", ["sglang", "prefill-first", "orca", "chunked", "tensorrt-llm"])
def test_shared_prefixes_are_computed_once(name: str) -> None:
    requests = [Request(str(i), 0.5 * i, 640 + 64, 4, prefix=(("system", 640),)) for i in range(4)]
    config = replace(config_for(name), enable_prefix_caching=True, block_size=16)
    replica, outcome, records = run(config, (TEXTBOOK | ENGINES)[name](), requests)
    assert [r.cached_tokens for r in records] == [0, 640, 640, 640]
    assert outcome.scheduled_tokens == 640 + 4 * (64 + 3)
    assert replica.num_used_blocks == 0


# Clients and failures.


def test_an_aborted_request_leaves_nothing_behind() -> None:
    for name, make in (TEXTBOOK | ENGINES).items():
        records: list[RequestRecord] = []
        loop = PolicyReplica(config_for(name), make(), DYADIC, records.append)
        for request in CROWD[:6]:
            assert loop.submit(request) is None
        loop.advance(0.1)
        assert loop.abort("3")
        assert not loop.abort("3")
        assert loop.first_token_s("0") is not None
        lost = loop.abort_all() if name == "orca" else ()
        while loop.next_s < inf:
            loop.advance(inf)
        assert sorted(r.id for r in records) == ([] if lost else ["0", "1", "2", "4", "5"])
        assert loop.num_used_blocks == 0
        assert loop.close().unfinished == ()


def test_time_goes_on_after_a_failure() -> None:
    records: list[RequestRecord] = []
    loop = PolicyReplica(ROOMY, Orca(), DYADIC, records.append)
    loop.submit(Request("a", 0.0, 100, 500))
    loop.advance(1.0)
    assert [r.id for r in loop.abort_all()] == ["a"]
    loop.submit(Request("b", 1.0, 100, 5))
    loop.advance(inf)
    (record,) = records
    assert record.first_scheduled_s >= 1.0


def test_the_example_of_the_tuning_guide() -> None:
    """Max batch size 4, max num tokens 12, prompts of 5: two go, the third does not fit."""
    config = replace(RESERVING, max_num_seqs=4, max_num_batched_tokens=12)
    requests = [Request(str(i), 0.0, 5, 10) for i in range(6)]
    _, outcome, records = run(config, TensorRtLlm(), requests)
    at = {r.id: r.first_scheduled_s for r in records}
    first = DYADIC.mixed(0, 0, [(5, 0), (5, 0)])
    assert [at[str(i)] for i in range(4)] == pytest.approx([0.0, 0.0, first, first])
    assert outcome.max_running == 4
    assert at["4"] == at["5"] == min(r.finish_s for r in records)
