"""The fleet of an answer of `capplan gpus` as a question of `capplan simulate`."""

from __future__ import annotations

from typing import Any

from capplan.cli.command_line import command_line
from capplan.cli.commands.simulation import simulate
from capplan.cli.gpus_asked import GpusOptions
from capplan.cli.inputs import Inputs
from capplan.cli.progress import Progress
from capplan.cli.simulation import ask
from capplan.planner.simulate import simulate_plan
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.report import FleetRun

# A P99 needs a thousand; the plots want a picture, not a proof.
NUM_REQUESTS = 4000
SLOW_NUM_REQUESTS = 1500  # where every step is taken one by one
# What both commands are told in the same words.
_SAME = (
    "plan", "trace", "arrivals", "seed", "engine", "engine_version", "gpu_memory", "block_size",
    "async_scheduling", "slo_goodput", "calibration",
)  # fmt: skip


def why_not(result: GpusResult) -> str | None:
    """Why the fleet cannot be simulated by `capplan simulate`, where it cannot."""
    if not result.feasible:
        return "there is no fleet to simulate"
    if result.served_as is None:
        return "bounds alone were asked for (--no-verify): nothing was simulated"
    if result.served_as.ep > 1 or result.served_as.dp > 1:
        return "`capplan simulate` takes expert parallelism and copies from a plan alone"
    return None


def fleet_run(options: GpusOptions, said: GpusInputs, result: GpusResult) -> FleetRun:
    """Simulate the replicas that carry the load, spares apart. Raises CapplanError as it does."""
    texts = simulate_texts(options, said, result)
    asked = ask({**dict.fromkeys(simulate.__annotations__), **texts}, Inputs())
    with Progress("simulating the fleet") as progress:
        found = simulate_plan(asked.question, progress)
    line = command_line("simulate", texts)
    return FleetRun(asked.inputs, found.result, found.curves(), line)


def simulate_texts(options: GpusOptions, said: GpusInputs, result: GpusResult) -> dict[str, Any]:
    """The options of `capplan simulate`: what was asked, and the replica that was chosen."""
    served = result.served_as
    assert served is not None
    texts: dict[str, Any] = {
        "model": said.model,
        "hardware": result.hardware,
        "replicas": str(result.num_replicas),
        "tp": str(result.tp),
        "pp": str(served.pp) if served.pp > 1 else None,
        "dtype": None if options.dtype is None else served.dtype,
        "kv_dtype": None if options.kv_dtype is None else served.kv_dtype,
        "max_num_seqs": str(served.max_num_seqs),
        "max_num_batched_tokens": str(served.max_num_batched_tokens),
        "gpu_memory_utilization": f"{served.gpu_memory_utilization:.9g}",
        "enable_prefix_caching": served.enable_prefix_caching,
        **{name: getattr(options, name) for name in _SAME},
        **_traffic(options, said),
        **_limits(said),
        "num_requests": str(SLOW_NUM_REQUESTS if served.one_pool else NUM_REQUESTS),
    }
    return {name: value for name, value in texts.items() if value is not None}


def _traffic(options: GpusOptions, said: GpusInputs) -> dict[str, str | None]:
    """A plan's traffic is its own; otherwise the peak rate and the lengths."""
    if options.plan is not None:
        names = ("qps", "peak_factor", "prompt_tokens", "output_tokens")
        return {name: getattr(options, name) for name in names}
    rate = f"{said.arrival_rate_per_s:.9g}"
    if options.trace is not None:
        return {"qps": rate}
    return {
        "qps": rate,
        "prompt_tokens": said.prompt_lengths,
        "output_tokens": said.output_lengths,
    }


def _limits(said: GpusInputs) -> dict[str, str]:
    limits = {"ttft": said.slo_ttft_s, "tpot": said.slo_tpot_s, "e2e": said.slo_e2e_s}
    texts = {f"slo_{key}": f"{1e3 * value:.9g}ms" for key, value in limits.items() if value}
    percentiles = set(said.slo_percentiles.values())
    if len(percentiles) == 1:
        texts["slo_percentile"] = f"{percentiles.pop():g}"
    return texts
