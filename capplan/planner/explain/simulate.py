"""`capplan explain simulate`: what was counted, and the identities that hold whatever happened."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.formulas.statistics import samples_needed
from capplan.planner.explain.bands import value_band_figures
from capplan.planner.explain.figure import figure
from capplan.planner.explain.load import load_figures
from capplan.planner.serving import Serving
from capplan.results.bands import BandedFigure
from capplan.results.explanation import Explanation, Figure, Symbol
from capplan.results.simulate import Latency, ServiceLevel, SimulateInputs, SimulateResult

_COUNTED = "counted in the run; docs/simulator.md"


def explain_simulate(
    asked: SimulateInputs, result: SimulateResult, serving: Serving
) -> Explanation:
    """Rates, shares and ranks follow by formulas; the latencies themselves were observed."""
    figures = [*_fleet(asked, result), *_rates(result)]
    for level in result.service_levels:
        figures += _level(level, result)
    figures += load_figures(asked, result, serving)
    figures += _usage(asked, result)
    figures += value_band_figures(_banded(result))
    headline = f"{asked.model_name}, {asked.traffic}: {result.verdict}"
    left_out = (
        "latencies: read off the requests of the run, in the order of their size",
        "intervals: from sections of the run or replications, docs/simulator.md",
        "step times: the step model, docs/model.md; that of the mean batch is shown in its parts",
        "goodput's band: counted again with every latency at the ends of its own",
    )
    return Explanation("simulate", headline, tuple(figures), left_out)


def _banded(result: SimulateResult) -> list[BandedFigure]:
    """Throughput, and what is limited, at the percentile of the limit."""
    statistics = {f"P{level.percentile:g}" for level in result.service_levels}
    return [
        band
        for band in result.bands
        if band.figure == "output_tokens_per_s" or band.statistic in statistics
    ]


def _fleet(asked: SimulateInputs, result: SimulateResult) -> Iterator[Figure]:
    each = result.num_gpus / asked.num_replicas
    yield figure(
        "GPUs",
        result.num_gpus,
        "",
        "gpus = replicas × each",
        [
            Symbol("replicas", "simulated", asked.num_replicas, ""),
            Symbol("each", f"TP {asked.tp} x PP {asked.pp}", each, ""),
        ],
        why="It is what this run says something about.",
        picture="Replicas side by side, each with its own queue.",
        check=f"{asked.traffic}.",
        source="the plan",
    )


def _rates(result: SimulateResult) -> Iterator[Figure]:
    state = result.saturation
    if result.window_s > 0:
        finished = round(result.requests_per_s * result.window_s)
        yield figure(
            "requests a second",
            result.requests_per_s,
            "req/s",
            "rate = finished / window",
            [
                Symbol("finished", "within the window", finished, ""),
                Symbol("window", "after the warm-up", result.window_s, "s"),
            ],
            why="What the deployment carried.",
            picture="Answers counted at the door.",
            check=f"{state.offered_per_s:.4g} came and {state.served_per_s:.4g} left a second: "
            + ("a queue grows." if state.saturated else "steady."),
            source=_COUNTED,
        )
        tokens = round(result.output_tokens_per_s * result.window_s)
        yield figure(
            "output tokens a second",
            result.output_tokens_per_s,
            "tokens/s",
            "throughput = tokens / window",
            [
                Symbol("tokens", "made within the window", tokens, "tokens"),
                Symbol("window", "after the warm-up", result.window_s, "s"),
            ],
            why="What the GPUs were there for.",
            picture="Words that left the building, over the time that it was open.",
            check=f"{result.output_tokens_per_s / result.num_gpus:,.0f} a GPU.",
            source=_COUNTED,
        )
    mean = next((x.mean_s for x in result.latencies if x.key == "e2e"), None)
    if mean is not None and not state.saturated:
        yield _in_flight(result, mean)


def _in_flight(result: SimulateResult, mean_s: float) -> Figure:
    return figure(
        "requests in flight",
        result.requests_per_s * mean_s,
        "",
        "in_flight = rate × stay",
        [
            Symbol("rate", "carried", result.requests_per_s, "req/s"),
            Symbol("stay", "mean from arrival to the last token", mean_s, "s"),
        ],
        why="Seats and KV have to hold it.",
        picture="Customers in the shop: how fast they come times how long they stay.",
        check=f"At most {result.usage.max_running:,} ran on a replica at once.",
        source="Little, Oper. Res. 9(3), 1961; docs/model.md 13",
    )


def _level(level: ServiceLevel, result: SimulateResult) -> Iterator[Figure]:
    latency = next((x for x in result.latencies if x.key == level.key), None)
    if latency is None or level.value_s is None:
        return
    yield _rank(level, latency)
    yield figure(
        f"{level.name}: headroom",
        1 - level.value_s / level.limit_s,
        "",
        "headroom = 1 - value / limit",
        [
            Symbol("value", f"P{level.percentile:g} of {level.name}", level.value_s, "s"),
            Symbol("limit", "of the service level", level.limit_s, "s"),
        ],
        why="It says how far the limit is.",
        picture="The gap between the measured value and the line that it must not cross.",
        check="The limit holds." if level.met else "The limit is missed.",
        source="definition",
    )


def _rank(level: ServiceLevel, latency: Latency) -> Figure:
    beyond = latency.num_samples * (1 - level.percentile / 100)
    return figure(
        f"{level.name}: samples beyond P{level.percentile:g}",
        beyond,
        "",
        "beyond = samples × (1 - percentile / hundred)",
        [
            Symbol("samples", "that count", latency.num_samples, ""),
            Symbol("percentile", "of the limit", level.percentile, ""),
            Symbol("hundred", "percent", 100, ""),
        ],
        why="A percentile with few samples beyond it is luck.",
        picture="The slowest few of all requests, which the percentile leaves out.",
        check=f"Ten are needed: {samples_needed(level.percentile):,} samples.",
        source="docs/simulator.md; ten samples beyond, as the house rule has it",
    )


def _usage(asked: SimulateInputs, result: SimulateResult) -> Iterator[Figure]:
    usage = result.usage
    window = Symbol("window", "after the warm-up", result.window_s, "s")
    if usage.mean_step_s is not None and usage.num_steps and usage.busy_fraction < 1:
        yield figure(
            "share of the time at work",
            usage.busy_fraction,
            "",
            "busy = steps × step / (window × replicas)",
            [
                Symbol("steps", "of all replicas", usage.num_steps, ""),
                Symbol("step", "mean", usage.mean_step_s, "s"),
                window,
                Symbol("replicas", "simulated", asked.num_replicas, ""),
            ],
            why="A replica that always works has nothing left for bursts.",
            picture="Minutes at work over minutes open.",
            check=f"{1 - usage.busy_fraction:.1%} of the time nothing ran.",
            source=_COUNTED,
        )
    if usage.mean_step_tokens is not None and usage.budget_fraction is not None:
        yield figure(
            "share of the token budget",
            usage.budget_fraction,
            "",
            "used = tokens / budget",
            [
                Symbol("tokens", "of a step, mean", usage.mean_step_tokens, "tokens"),
                Symbol("budget", "max_num_batched_tokens", asked.max_num_batched_tokens, "tokens"),
            ],
            why="Full steps are long steps.",
            picture="How full the bus is that leaves every step.",
            check=f"{usage.mean_batch or 0:.3g} of them are decodes.",
            source=_COUNTED,
        )
    if result.goodput is not None and result.window_s > 0:
        good = round(result.goodput.goodput_per_s * result.window_s)
        yield figure(
            "requests within all limits",
            result.goodput.goodput_per_s,
            "req/s",
            "goodput = good / window",
            [Symbol("good", "that met every limit of a request", good, ""), window],
            why="Throughput that nobody can use does not count.",
            picture="Only the customers who left content.",
            check=f"{result.goodput.met_fraction:.1%} of those who came.",
            source="Zhong et al., DistServe, arXiv:2401.09670; " + _COUNTED,
        )
