"""Error bands of a simulated run: how near to full it is, and what each figure takes."""

from __future__ import annotations

from capplan.performance.bands import BandKey, band_key
from capplan.performance.batch import Chunk
from capplan.planner.bands import latency_band, throughput_band
from capplan.planner.serving import Serving
from capplan.results.bands import BandedFigure
from capplan.results.simulate import Latency, SimulateResult


def simulated_bands(
    serving: Serving, result: SimulateResult, num_users: int | None
) -> tuple[BandedFigure, ...]:
    """Of every latency and the throughput of a run; ``num_users`` of a closed loop."""
    if not result.num_measured or not result.output_tokens_per_s:
        return ()
    used = _utilisation(serving, result, num_users)
    key = key_of(serving, used)
    by_key = {latency.key: latency for latency in result.latencies}
    found = [
        figure
        for latency in result.latencies
        for figure in _of_latency(latency, by_key.get("ttft"), key)
    ]
    # Below capacity an open loop is served as fast as it comes, however quick the server.
    is_held = num_users is None and not result.saturation.saturated
    fullness = used if is_held else None
    return (*found, throughput_band(result.output_tokens_per_s, fullness, key))


def key_of(serving: Serving, utilisation: float) -> BandKey:
    """The kind of rows that a replica is like."""
    deployment, own = serving.deployment, serving.calibration.own
    return band_key(
        deployment.model, deployment.hardware, serving.scheduler, deployment.num_gpus, utilisation,
        own and own.at_tp(deployment.tp),
    )  # fmt: skip


def requests_per_s_when_full(serving: Serving, result: SimulateResult) -> float:
    """What one replica carries with every seat taken: one step of the steady state.

    Each finished request makes room for a prompt, so that a step reads batch / output prompts
    beside its decodes. Lengths and prefix hits are those of the run.
    """
    served = result.requests_per_s
    output = max(1.0, result.output_tokens_per_s / served)
    prompt = result.prompt_tokens_per_s / served
    read = max(1.0, prompt * (1 - (result.usage.prefix_hit_fraction or 0.0)))
    budget = serving.config.max_num_batched_tokens
    batch = min(held_requests(serving, result), budget / (1 + read / output))
    reads = serving.steps.uniform_reads(batch, round(prompt + output / 2))
    whole, rest = divmod(batch / output, 1.0)
    part = Chunk(max(1, round(rest * read)), round((1 - rest) * read / 2))
    chunks = [*[Chunk(round(read))] * int(whole), part]
    return batch / output / serving.steps.mixed(batch, reads, chunks).total_s


def held_requests(serving: Serving, result: SimulateResult) -> float:
    """Requests of the run's mean length that seats and KV of one replica hold; at least one."""
    tokens = (result.prompt_tokens_per_s + result.output_tokens_per_s) / result.requests_per_s
    fit = serving.config.usable_blocks * serving.config.block_size / max(1.0, tokens)
    return max(1.0, min(float(serving.config.slots), fit))


def _utilisation(serving: Serving, result: SimulateResult, num_users: int | None) -> float:
    """As the bands' rows count it: a closed loop's users over what seats and KV hold, an open
    loop's rate over what the replicas carry."""
    state = result.saturation
    if state.saturated or not result.requests_per_s:
        return 1.0
    if num_users is not None:
        return num_users / serving.num_replicas / held_requests(serving, result)
    capacity_per_s = serving.num_replicas * requests_per_s_when_full(serving, result)
    return max(state.offered_per_s, state.served_per_s) / capacity_per_s


def _of_latency(latency: Latency, ttft: Latency | None, key: BandKey) -> list[BandedFigure]:
    values = [("mean", 0.0, latency.mean_s)]
    values += [(f"P{p.percentile:g}", p.percentile, p.value_s) for p in latency.percentiles]
    first = {f"P{p.percentile:g}": p.value_s for p in ttft.percentiles} if ttft else {}
    first["mean"] = ttft.mean_s if ttft else None
    return [
        latency_band(latency.key, statistic, percentile, value, first.get(statistic), key)
        for statistic, percentile, value in values
        if value is not None
    ]
