"""The load that a run's client made: how requests arrive, how many, how long they are."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import Literal

from capplan.accuracy.arrivals import Arrivals, arrivals_of, num_runs_of
from capplan.accuracy.benchmarks.aiconfigurator import recipe_of
from capplan.accuracy.benchmarks.mlperf import LatencyLimits, limits_of
from capplan.accuracy.drawn_lengths import STEADY_TOOLS, counted, draws_of, mean_share
from capplan.accuracy.lengths import Draw, with_mean
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.warm_cache import finds_its_prompts
from capplan.errors import UnsupportedError
from capplan.results.assumptions import Assumption

Kind = Literal["closed", "poisson", "constant-rate", "burst", "static"]

# Requests for each client of a closed loop, where the source does not say: InferenceX's rule.
_REQUESTS_PER_CLIENT = 10
_LEAST_REQUESTS = 40
_USUAL_OFFLINE_REQUESTS = 3000
# MLPerf runs at least ten minutes, and its data set at least once (mlcommons/inference_policies;
# 24,576 questions of OpenOrca, 8,313 long ones for Llama-3.1-405B).
_MLPERF_S = 600.0
_MLPERF_REQUESTS = {"OpenOrca": 24_576, "MLPerf long-context": 8_313}
_DRAWS = 3  # of a short open loop with random times
_LLMPERF_REQUESTS = 150  # of its README's example
# Where a source gives no lengths: 200 to 300 ShareGPT prompts of vLLM's benchmark scripts
# (ionet, buildkite), and for AccelMark's sets those of other rows on the same prompts; short
# prompts by the file's `input_tokens` and a chat template, whose answers are cut at 512.
_SHAREGPT_TOKENS = (215.0, 214.0)
_ACCELMARK_TOKENS = {
    "sharegpt_standard_v1": (255.0, 345.0),
    "sharegpt_longctx_v1": (28640.0, 256.0),
    "sharegpt_edge_v1": (110.0, 300.0),
    "sharegpt_swa_v1": (10000.0, 256.0),
}
# Requests of one online run, where several runs are pooled: at rates that servers keep up with,
# runs of "200" long prompts end after 100 arrivals (the notes' elapsed time).
_ONLINE_REQUESTS = {"sharegpt_longctx_v1": 100}


@dataclass(frozen=True)
class Load:
    """``concurrency`` clients, or ``rate_per_s``; lengths are (prompt, output) tokens."""

    kind: Kind
    num_requests: int
    concurrency: int
    rate_per_s: float
    mean_prompt_tokens: float
    mean_output_tokens: float
    draw: Draw  # prompt
    draw_output: Draw
    keeps_means: bool  # what was sent has the row's means: they were counted, not asked for
    least_duration_s: float  # of a benchmark that goes on so long
    steady_from: int  # requests before it are sent and not counted in latencies
    limits: LatencyLimits | None  # within which the benchmark sought the highest rate
    finds_prompts: bool  # in the KV cache, from an earlier run
    arrivals: Arrivals | None  # the client's own, where its generator and seed are known
    num_draws: int  # of a short open loop, whose metrics are the mean over them
    by_http: bool  # to a server, not by a call in its process
    dealt: int  # replicas that take the requests of one stream in turn
    assumptions: tuple[Assumption, ...]

    def lengths(self, seed: int = 0) -> list[tuple[int, int]]:
        """As the client draws them; prompts and outputs from streams of their own."""
        prompts, outputs = random.Random(f"{seed} prompts"), random.Random(f"{seed} outputs")
        drawn = [(self.draw(prompts), self.draw_output(outputs)) for _ in range(self.num_requests)]
        if not self.keeps_means:
            return drawn
        prompt_sizes = with_mean([prompt for prompt, _ in drawn], self.mean_prompt_tokens)
        output_sizes = with_mean([output for _, output in drawn], self.mean_output_tokens)
        return list(zip(prompt_sizes, output_sizes, strict=True))


def load_of(run: MeasuredRun) -> Load:
    """Raises UnsupportedError where the row says too little to send anything."""
    return _Load(run).load()


class _Load:
    def __init__(self, run: MeasuredRun) -> None:
        self.run = run
        self.recipe = recipe_of(run)
        self.assumptions: list[Assumption] = []

    def assume(self, what: str, value: str, column: str) -> None:
        self.assumptions.append(Assumption(what, value, column))

    def load(self) -> Load:
        prompt, output = self.tokens()
        kind, concurrency, rate = self.arrivals()
        num = self.stated_requests() or self.num_requests(kind, concurrency, rate)
        draw, draw_output = draws_of(self.run, prompt, output, self.assume)
        shrink = mean_share(self.run)
        return Load(
            kind=kind,
            num_requests=num,
            concurrency=concurrency,
            rate_per_s=rate,
            mean_prompt_tokens=prompt * shrink,
            mean_output_tokens=output * shrink,
            draw=draw,
            draw_output=draw_output,
            keeps_means=counted(self.run),
            least_duration_s=self.least_duration_s(),
            steady_from=self.steady_from(kind, concurrency),
            limits=self.limits(),
            finds_prompts=self.finds_prompts(),
            arrivals=self.client_arrivals(num, rate),
            num_draws=num_runs_of(self.run) or _DRAWS,
            by_http=self.by_http(),
            dealt=1,
            assumptions=tuple(self.assumptions),
        )

    def tokens(self) -> tuple[float, float]:
        run = self.run
        usual = _ACCELMARK_TOKENS.get(run.dataset)
        if usual is None and "sharegpt" in run.dataset.lower():
            usual = _SHAREGPT_TOKENS
        found = []
        for column, given, default in (
            ("isl", run.isl, usual and usual[0]),
            ("osl", run.osl, usual and usual[1]),
        ):
            if given is None:
                if default is None:
                    raise UnsupportedError(f"`{column}` is not stated")
                self.assume(
                    "prompt tokens" if column == "isl" else "output tokens",
                    f"{default:g}, of other runs of {run.dataset}",
                    column,
                )
            found.append(max(1.0, given if given is not None else default or 1.0))
        return found[0], found[1]

    def arrivals(self) -> tuple[Kind, int, float]:
        """How requests come, how many clients there are, and the rate."""
        run = self.run
        if run.workload in ("static", "offline-batch"):
            batch = run.concurrency or run.num_prompts
            if batch is None:
                raise UnsupportedError("`concurrency` (the batch) is not stated")
            kind: Kind = "static" if run.workload == "static" else "burst"
            return kind, batch * self.batches(), math.inf
        if run.workload == "closed":
            if run.concurrency is None:
                raise UnsupportedError("`concurrency` is not stated")
            return "closed", run.concurrency, math.inf
        if run.workload in ("burst", "offline"):
            return "burst", 0, math.inf
        noted = re.search(r"num_prompts = (\d+) x RPS", run.columns.get("notes", ""))
        if run.request_rate_qps is None and noted and run.num_prompts:
            rate = run.num_prompts / int(noted[1])
            self.assume("request rate", f"{rate:g}/s: requests / {noted[1]}", "request_rate_qps")
        elif run.request_rate_qps is None:
            # A server that keeps up answers as many requests as come.
            rate = run.metrics.get("req_s") or 0.0
            if not rate:
                raise UnsupportedError("`request_rate_qps` is not stated")
            self.assume("request rate", f"{rate:g}/s: the measured throughput", "request_rate_qps")
        else:
            rate = run.request_rate_qps
        if math.isinf(rate):
            return "burst", 0, math.inf
        return "poisson" if run.workload == "poisson" else "constant-rate", 0, rate

    def batches(self) -> int:
        """dstack's scripts start a client with a batch of its own for each replica."""
        run = self.run
        if "replicas each given batch_size prompts" not in run.columns.get("notes", ""):
            return 1
        return max(1, (run.num_gpus or 1) // (run.tp or 1))

    def stated_requests(self) -> int | None:
        """Of one run: rows that pool several runs state the sum."""
        stated, of_run = self.run.num_prompts, _ONLINE_REQUESTS.get(self.run.dataset)
        stated = stated and stated * self.batches()
        if stated is None or of_run is None or stated <= of_run:
            return stated
        self.assume("requests", f"{of_run}: the {stated} stated are of several runs", "num_prompts")
        return of_run

    def num_requests(self, kind: Kind, concurrency: int, rate: float) -> int:
        if kind == "static":
            return concurrency
        if self.recipe.requests_per_client is not None:
            num = self.recipe.requests_per_client * concurrency
        elif self.run.dataset.lower().startswith("llmperf"):
            num = _LLMPERF_REQUESTS
        elif kind == "closed":
            num = max(_LEAST_REQUESTS, _REQUESTS_PER_CLIENT * concurrency)
        elif kind == "burst":
            num = concurrency or self.mlperf_requests() or _USUAL_OFFLINE_REQUESTS
        else:
            num = max(500, round(_MLPERF_S * rate))
        self.assume("requests", f"{num:,}", "num_prompts")
        return num

    def mlperf_requests(self) -> int:
        """Of one pass over the data set; 0 for other benchmarks."""
        data = self.run.dataset
        return next((num for name, num in _MLPERF_REQUESTS.items() if data.startswith(name)), 0)

    def least_duration_s(self) -> float:
        return _MLPERF_S if self.mlperf_requests() else 0.0

    def steady_from(self, kind: Kind, concurrency: int) -> int:
        """GenAI-Perf measures once the load is stable: the first burst is left out.

        AIPerf ends its warm-up before the phase that it measures, which begins with all clients at
        once (aiperf/timing, `warmup_request_count`).
        """
        dataset = self.run.dataset.lower()
        if kind != "closed" or not any(tool in dataset for tool in STEADY_TOOLS):
            return 0
        self.assume("first burst", "not measured", "dataset")
        return concurrency

    def finds_prompts(self) -> bool:
        found = finds_its_prompts(self.run)
        if found:
            what = "found in the cache: the run before sent the same to this server"
            self.assume("prompts", what, "prefix_caching")
        return found

    def client_arrivals(self, num: int, rate: float) -> Arrivals | None:
        found = arrivals_of(self.run, num, rate)
        if found is not None:
            self.assume("arrivals", "as the client's script draws them", "dataset")
        return found

    def by_http(self) -> bool:
        """Not offline, nor from MLPerf's load generator, which calls the engine."""
        offline = self.run.workload in ("static", "offline", "offline-batch")
        return not offline and "mlperf" not in self.run.dataset.lower() and not limits_of(self.run)

    def limits(self) -> LatencyLimits | None:
        found = limits_of(self.run)
        if found is not None:
            what = f"{found.ttft_p99_ms:g} ms TTFT and {found.tpot_p99_ms:g} ms TPOT at p99"
            self.assume("request rate", f"the highest within {what}", "request_rate_qps")
        return found
