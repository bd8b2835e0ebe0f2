"""When a benchmark's client sends its requests: the very times, where its script has a fixed seed.

A run of 200 requests is one draw of many; its tail, and whether a server near saturation falls
behind, depend on where the draw has its clusters. The seeds of two public clients are known:

- vLLM's `benchmark_serving.py` (`vllm bench serve`): `np.random.seed(--seed)`, by default 0, then
  one exponential gap after each request (`get_request`: a gamma of shape `--burstiness` 1). Data
  sets are sampled with Python's generator before, which leaves numpy's as it was.
- AccelMark's `loadgen.py`: `random.Random(42)`, a gap before each request, from one stream for all
  rates of its suite and all runs of a rate.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from itertools import accumulate, islice

from capplan.accuracy.measured import MeasuredRun

# Seconds since the start, of each request of draw 0, 1, ...
Arrivals = Callable[[int], list[float]]

_STATED_SEED = re.compile(r"\bseed (\d+)\b")
# Results of that script, by what their sources say of it: its nightly harness, its file names
# (`vllm-16.0qps-MODEL`), and the prompts of its nightly benchmark that NVIDIA's tables repeat
# (467 tokens of sonnets for 16 or 256, 202 of ShareGPT for 214; two runs of 500 at 2/s last
# as long as seed 0 says, to 0.3 of 252 s).
_VLLM_CLIENT = re.compile(r"vLLM nightly-benchmark|vllm-[\d.]+qps-")
_VLLM_DEFAULT_SEED = 0

_ACCELMARK_SEED = 42
# AccelMark's suite.json: rates in the order that they are run, and runs of each.
_ACCELMARK_SUITES = {
    "A": ((5.0, 25.0, 100.0), 3),
    "D": ((0.5, 1.0, 2.0), 2),
    "F": ((2.0, 10.0, 40.0), 3),
    "G": ((2.0, 10.0, 40.0), 3),
    "H": ((5.0, 25.0, 100.0), 3),
}
_ACCELMARK_SUITE = re.compile(r"AccelMark suite ([A-Z])\b")
_LEGACY_WORDS = 624


def arrivals_of(run: MeasuredRun, num_requests: int, rate_per_s: float) -> Arrivals | None:
    """None where the client's generator or its seed are not known."""
    if run.workload != "poisson":
        return None
    suite = _suite(run)
    if suite is not None:
        rates, num_runs = suite
        if rate_per_s not in rates:
            return None
        return lambda draw: _accelmark(rates, num_runs, num_requests, rate_per_s, draw)
    seed = vllm_seed(run)
    if seed is None:
        return None
    times = [0.0, *accumulate(islice(_numpy_exponentials(seed), num_requests - 1))]
    scaled = [time / rate_per_s for time in times]
    return lambda _: scaled


def vllm_seed(run: MeasuredRun) -> int | None:
    """The seed of vLLM's client, stated or its default; None where it is another client."""
    stated = _STATED_SEED.search(run.dataset)
    if stated:
        return int(stated[1])
    notes = run.columns.get("notes", "")
    if _VLLM_CLIENT.search(notes) or run.dataset.startswith("fixed-mean (467/256"):
        return _VLLM_DEFAULT_SEED
    return None


def num_runs_of(run: MeasuredRun) -> int | None:
    """Runs that a row of AccelMark pools."""
    suite = _suite(run)
    return None if suite is None else suite[1]


def _suite(run: MeasuredRun) -> tuple[tuple[float, ...], int] | None:
    named = _ACCELMARK_SUITE.search(run.columns.get("notes", ""))
    return _ACCELMARK_SUITES.get(named[1]) if named else None


def _accelmark(
    rates: tuple[float, ...], num_runs: int, num_requests: int, rate_per_s: float, draw: int
) -> list[float]:
    rng = random.Random(_ACCELMARK_SEED)
    before = (rates.index(rate_per_s) * num_runs + draw) * num_requests
    for _ in range(before):
        rng.random()  # each gap takes one number
    return list(accumulate(rng.expovariate(rate_per_s) for _ in range(num_requests)))


def _numpy_exponentials(seed: int) -> Iterator[float]:
    """`np.random.seed(seed)`, then `np.random.exponential()`: the stream that numpy keeps frozen.

    It is Python's Mersenne Twister with Knuth's seeding, and -log(1 - u) of its doubles
    (numpy/random/src/mt19937, legacy-distributions.c).
    """
    words = [seed & 0xFFFFFFFF]
    for index in range(1, _LEGACY_WORDS):
        last = words[-1]
        words.append((1812433253 * (last ^ (last >> 30)) + index) & 0xFFFFFFFF)
    rng = random.Random()
    rng.setstate((3, (*words, _LEGACY_WORDS), None))
    while True:
        yield -math.log(1.0 - rng.random())
