"""What public benchmark clients send: their own arrival times and lengths."""

from __future__ import annotations

import random
import statistics
from math import inf

import numpy as np
import pytest
from measured_rows import poisson_run

from capplan.accuracy.arrivals import arrivals_of, vllm_seed
from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.scheduler import make_loop
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.step_time import AffineStepTime


def _run(**cells: str) -> MeasuredRun:
    plain = {"num_prompts": "200", "isl": "208", "osl": "215", "prefix_caching": "off"}
    return poisson_run(**plain | {"dataset": "ShareGPT (200 prompts, seed 42)"} | cells)


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1])
def test_arrivals_are_those_of_vllms_client(seed: int) -> None:
    """As `get_request` of benchmark_serving.py draws them, one gap after each request."""
    np.random.seed(seed)
    gaps = [np.random.gamma(shape=1.0, scale=1 / 4) for _ in range(199)]
    run = _run(dataset=f"ShareGPT (200 prompts, seed {seed})")
    arrivals = arrivals_of(run, 200, 4.0)
    assert arrivals is not None
    assert arrivals(0) == pytest.approx([0.0, *np.cumsum(gaps)], rel=1e-12)
    assert arrivals(0) == arrivals(1)  # the script has one seed; only lengths are drawn here


def test_a_client_of_vllm_without_a_stated_seed_has_seed_0() -> None:
    harness = _run(dataset="ShareGPT (200 prompts)", notes="vLLM nightly-benchmark harness on X")
    assert vllm_seed(harness) == 0
    assert vllm_seed(_run(dataset="ShareGPT", notes="run file vllm-16.0qps-Llama.json")) == 0
    assert vllm_seed(_run(dataset="ShareGPT", notes="another client")) is None
    assert arrivals_of(_run(workload="closed", concurrency="4"), 200, 4.0) is None


def test_accelmark_draws_all_rates_and_runs_from_one_stream() -> None:
    """loadgen.py, suite A: 5, 25 and 100/s, three runs of each; a gap before each request."""
    rng = random.Random(42)
    gaps = [[[rng.expovariate(rate) for _ in range(300)] for _ in range(3)] for rate in (5, 25)]
    notes = "AccelMark suite A, max_model_len 4096"
    run = _run(dataset="sharegpt_standard_v1", notes=notes)
    arrivals = arrivals_of(run, 300, 25.0)
    assert arrivals is not None
    for draw in range(3):
        assert arrivals(draw) == pytest.approx(np.cumsum(gaps[1][draw]), rel=1e-12)
    assert arrivals_of(run, 300, 7.0) is None  # not a rate of this suite
    other = _run(dataset="sharegpt_standard_v1", notes="AccelMark suite B")
    assert arrivals_of(other, 300, 25.0) is None


def test_the_emulated_run_lasts_as_long_as_the_clients() -> None:
    """io.net's client at 1/s: its last request leaves 187.6 s after the first."""
    run = _run(request_rate_qps="1")
    settings = settings_of(run)
    load = load_of(run)
    assert any("as the client's script" in a.value for a in load.assumptions)
    found = emulate(settings, load, server_of(settings)).metrics
    assert 187.6 < 200 / found["req_s"] < 187.6 + 10


def test_replicas_share_random_arrivals() -> None:
    run = _run(num_gpus="2", tp="1")
    settings = settings_of(run)
    found = emulate(settings, load_of(run), server_of(settings)).metrics
    assert settings.num_replicas == 2
    assert found["req_s"] == pytest.approx(4, rel=0.2)


def test_sharegpts_answers_are_often_a_few_words() -> None:
    """SGLang's client with 1,000 of them: median 0.6 of the mean, deviation 1.1 of it."""
    answers = [output for _, output in load_of(_run(num_prompts="20000")).lengths()]
    mean = statistics.fmean(answers)
    assert mean == pytest.approx(215, rel=0.01)
    assert statistics.median(answers) / mean == pytest.approx(0.62, abs=0.03)
    assert statistics.pstdev(answers) / mean == pytest.approx(1.07, abs=0.05)
    assert sum(answer < 20 for answer in answers) / len(answers) > 0.1


def test_answers_that_a_model_stops_itself_are_not_sharegpts() -> None:
    own = load_of(_run(dataset="ShareGPT natural stop (mean prompt 158)", num_prompts="20000"))
    assert sum(output < 20 for _, output in own.lengths()) < 0.02 * 20_000


def test_sonnets_have_one_length() -> None:
    text = "fixed-mean (467/256 = ShareGPT-like, 202/214; doc gives lengths only)"
    sonnets = load_of(_run(dataset=text, isl="467", osl="256", num_prompts="500"))
    assert set(sonnets.lengths()) == {(467, 256)}
    chats = load_of(_run(dataset=text, isl="202", osl="214", num_prompts="500"))
    assert len(set(chats.lengths())) > 100


def test_prompts_that_are_cut_have_one_length() -> None:
    """AccelMark's suite H: the last 10,000 tokens of each."""
    load = load_of(_run(dataset="sharegpt_swa_v1", isl="", osl="256", notes="output cap 256"))
    assert set(load.lengths()) == {(10_000, 256)}


def test_long_prompts_of_accelmark_are_about_equal() -> None:
    """Suite D: the quartiles lie within 2 % of the median."""
    run = _run(dataset="sharegpt_longctx_v1", isl="28640", osl="256", notes="output cap 256")
    prompts = [prompt for prompt, _ in load_of(run).lengths()]
    assert max(prompts) < 1.05 * 28640
    assert min(prompts) > 0.95 * 28640


@pytest.mark.parametrize(("num_blocks", "together"), [(1005, 9), (1015, 10)])
def test_vllm_v0_keeps_a_hundredth_of_its_blocks_free(num_blocks: int, together: int) -> None:
    """BlockSpaceManager of 0.4 to 0.7: a prompt is admitted if 1 % stays free after it."""
    run = _run(engine_version="0.7.3", isl="1600", osl="16", dataset="", chunked_prefill="off")
    settings = settings_of(run)
    assert settings.engine.scheduler == "vllm-v0"
    lengths = [(1600, 12)] * 10  # of 100 blocks, and one more when the first token is there
    done: list[RequestRecord] = []
    loop = make_loop(settings, AffineStepTime(0.01, 0, 0), 16 * num_blocks, lengths, done.append)
    for index, (prompt, output) in enumerate(lengths):
        loop.submit(Request(str(index), 0.0, prompt, output))
    while len(done) < len(lengths):
        loop.advance(inf)
    first_end = min(record.finish_s for record in done)
    assert sum(record.first_token_s < first_end for record in done) == together


@pytest.mark.parametrize(
    ("cells", "limits"),
    [
        ({}, (128, 2048)),  # SchedulerConfig's own
        ({"workload": "closed", "concurrency": "1"}, (128, 2048)),
        ({"workload": "offline", "max_num_seqs": "512"}, (512, 16384)),  # LLM on 80 GB of Hopper
        ({"workload": "offline", "gpu": "A100-80GB-SXM", "max_num_seqs": "512"}, (512, 8192)),
        ({"settings_notes": ""}, (1024, 8192)),  # a server
    ],
)
def test_vllm_inside_a_program_has_defaults_of_its_own(
    cells: dict[str, str], limits: tuple[int, int]
) -> None:
    notes = "in-process engine; the async path passes none"
    run = _run(**({"engine_version": "0.19.1", "settings_notes": notes} | cells))
    settings = settings_of(run)
    assert (settings.max_num_seqs, settings.max_num_batched_tokens) == limits
