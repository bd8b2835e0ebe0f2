"""Error bands of a simulated run: how near to full it is, and what each figure takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capplan.performance.bands import BandKey, band_key
from capplan.performance.batch import Chunk
from capplan.planner.bands import latency_band, throughput_band
from capplan.planner.serving import Serving
from capplan.results.bands import BandedFigure
from capplan.results.simulate import Latency, SimulateResult
from capplan.simulator.run_data import RunData
from capplan.simulator.service_levels import goodput_of
from capplan.simulator.yardstick import Limit, Yardstick, window_of


@dataclass(frozen=True, slots=True)
class Flow:
    """What the mean request of a run brings; ``hit_fraction`` of its prompt is in the cache."""

    prompt_tokens: float
    output_tokens: float
    hit_fraction: float = 0.0


def simulated_bands(
    serving: Serving,
    result: SimulateResult,
    num_users: int | None,
    runs: Sequence[RunData] = (),
    yardstick: Yardstick | None = None,
) -> tuple[BandedFigure, ...]:
    """Of every latency and throughput of a run; ``num_users`` of a closed loop.

    Goodput is counted again, with the runs and what they are judged by, at the bands' ends.
    """
    if not result.num_measured or not result.output_tokens_per_s:
        return ()
    used = _utilisation(serving, result, num_users)
    key = key_of(serving, used)
    found = list(_of_latencies(result.latencies, key))
    for one in result.classes:
        found += _of_latencies(one.latencies, key, of=f" of {one.name}", with_max=False)
    if result.usage.mean_step_s:
        found.append(latency_band("step", "mean", 0.0, result.usage.mean_step_s, None, key))
    # Below capacity an open loop is served as fast as it comes, however quick the server.
    is_held = num_users is None and not result.saturation.saturated
    fullness = used if is_held else None
    tokens = throughput_band(result.output_tokens_per_s, fullness, key)
    found += [tokens, throughput_band(result.requests_per_s, fullness, key, "requests_per_s")]
    if yardstick is not None and result.goodput is not None:
        share = (tokens.low / tokens.value, tokens.high / tokens.value)
        found.append(_goodput(result, runs, yardstick, key, share))
    return tuple(found)


def _goodput(
    result: SimulateResult,
    runs: Sequence[RunData],
    yardstick: Yardstick,
    key: BandKey,
    share: tuple[float, float],
) -> BandedFigure:
    """With every latency at the slow end of its band, and at the quick one."""
    assert result.goodput is not None
    windows = [window_of(run, yardstick) for run in runs]
    low, high = (
        goodput_of(windows, replace(yardstick, limits=limits), False).goodput_per_s
        for limits in as_quick(yardstick.limits, key)
    )
    value = result.goodput.goodput_per_s
    band = throughput_band(value, None, key, "goodput_per_s")
    limits = min(value, low * share[0]), max(value, high * share[1])
    return replace(band, low=limits[0], high=limits[1])


def as_quick(limits: Sequence[Limit], key: BandKey) -> tuple[tuple[Limit, ...], tuple[Limit, ...]]:
    """Limits as they look to a server at the slow end of its bands, and at the quick one.

    A request that takes 1.3 times as long as predicted meets a limit if the predicted one meets
    a limit 1.3 times as tight.
    """
    slow, quick = [], []
    for limit in limits:
        band = latency_band(limit.key, "", limit.percentile, 1.0, 0.0, key)
        slow.append(replace(limit, limit_s=limit.limit_s / band.high))
        quick.append(replace(limit, limit_s=limit.limit_s / band.low))
    return tuple(slow), tuple(quick)


def key_of(serving: Serving, utilisation: float) -> BandKey:
    """The kind of rows that a replica is like."""
    deployment, own = serving.deployment, serving.calibration.own
    return band_key(
        deployment.model, deployment.hardware, serving.scheduler, deployment.num_gpus, utilisation,
        own and own.at_tp(deployment.tp),
    )  # fmt: skip


def flow_of(result: SimulateResult) -> Flow:
    """Lengths and prefix hits as they were in the run."""
    served = result.requests_per_s
    return Flow(
        prompt_tokens=result.prompt_tokens_per_s / served,
        output_tokens=result.output_tokens_per_s / served,
        hit_fraction=result.usage.prefix_hit_fraction or 0.0,
    )


def requests_per_s_when_full(serving: Serving, flow: Flow) -> float:
    """What one replica carries with every seat taken: one step of the steady state.

    Each finished request makes room for a prompt, so that a step reads batch / output prompts
    beside its decodes.
    """
    output, prompt = max(1.0, flow.output_tokens), flow.prompt_tokens
    read = max(1.0, prompt * (1 - flow.hit_fraction))
    budget = serving.config.max_num_batched_tokens
    batch = min(held_requests(serving, flow), budget / (1 + read / output))
    reads = serving.steps.uniform_reads(batch, round(prompt + output / 2))
    whole, rest = divmod(batch / output, 1.0)
    part = Chunk(max(1, round(rest * read)), round((1 - rest) * read / 2))
    chunks = [*[Chunk(round(read))] * int(whole), part]
    return batch / output / serving.steps.mixed(batch, reads, chunks).total_s


def held_requests(serving: Serving, flow: Flow) -> float:
    """Requests of that length that seats and KV of one replica hold; at least one."""
    tokens = flow.prompt_tokens + flow.output_tokens
    fit = serving.config.usable_blocks * serving.config.block_size / max(1.0, tokens)
    return max(1.0, min(float(serving.config.slots), fit))


def _utilisation(serving: Serving, result: SimulateResult, num_users: int | None) -> float:
    """As the bands' rows count it: a closed loop's users over what seats and KV hold, an open
    loop's rate over what the replicas carry."""
    state = result.saturation
    if state.saturated or not result.requests_per_s:
        return 1.0
    flow = flow_of(result)
    if num_users is not None:
        return num_users / serving.num_replicas / held_requests(serving, flow)
    capacity_per_s = serving.num_replicas * requests_per_s_when_full(serving, flow)
    return max(state.offered_per_s, state.served_per_s) / capacity_per_s


def _of_latencies(
    latencies: Sequence[Latency], key: BandKey, *, of: str = "", with_max: bool = True
) -> Iterator[BandedFigure]:
    """Each statistic; ``of`` names a class of the traffic."""
    first = next((_statistics(one) for one in latencies if one.key == "ttft"), [])
    ttft = {statistic: value for statistic, _, value in first}
    for latency in latencies:
        for statistic, percentile, value in _statistics(latency):
            if value is not None and (with_max or statistic != "max"):
                name = f"{statistic}{of}"
                yield latency_band(latency.key, name, percentile, value, ttft.get(statistic), key)


def _statistics(latency: Latency) -> list[tuple[str, float, float | None]]:
    """(name, percentile, value); the mean counts as the median does."""
    return [
        ("mean", 0.0, latency.mean_s),
        *((f"P{p.percentile:g}", p.percentile, p.value_s) for p in latency.percentiles),
        ("max", 100.0, latency.max_s),
    ]
