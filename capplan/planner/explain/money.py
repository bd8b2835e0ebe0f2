"""The bill and the power, explained."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain.figure import figure
from capplan.planner.question import Workload
from capplan.results.explanation import Figure, Symbol
from capplan.results.gpus import Cost, Power

_HOUR = Symbol("seconds", "of an hour", 3600, "s")


def cost_figures(cost: Cost, workload: Workload) -> Iterator[Figure]:
    gpus = Symbol("gpus", "paid for: spares and whole nodes included", cost.num_gpus, "")
    yield figure(
        "bill of an hour",
        cost.usd_per_hour,
        "$",
        "hour = gpus × price × factor",
        [
            gpus,
            Symbol("price", f"of a GPU-hour: {cost.source}", cost.usd_per_gpu_hour_listed, "$"),
            Symbol("factor", "of a contract, 1 at the list price", cost.price_factor, ""),
        ],
        why="GPUs are paid for by the hour, whether they work or wait.",
        picture="Every GPU that stands there, at its price.",
        check=f"A year is {cost.usd_per_hour * 8760:,.0f} dollars.",
        source="the hardware file's price and date, or --price",
    )
    month = Symbol("hour", "the bill of an hour", cost.usd_per_hour, "$")
    yield figure(
        "bill of a month",
        cost.usd_per_month,
        "$",
        "month = hour × hours",
        [month, Symbol("hours", "of a month", cost.hours_per_month, "")],
        why="Budgets are made by the month.",
        picture="8,760 hours of a year over twelve.",
        check="365 × 24 / 12 = 730 hours, as cloud price lists have it.",
        source="docs/model.md, Money and power",
    )
    yield from _per_million(cost, workload, month)


def _per_million(cost: Cost, workload: Workload, hour: Symbol) -> Iterator[Figure]:
    rate = Symbol("rate", "offered", workload.arrival_rate_per_s, "req/s")
    prompt = Symbol("prompt", "of a prompt", workload.prompt_tokens, "tokens")
    output = Symbol("output", "of an answer", workload.output_tokens, "tokens")
    share = Symbol("share", "of the work that is prefill", cost.prefill_time_fraction, "")
    source = "docs/model.md, Money and power"
    both = workload.arrival_rate_per_s * (workload.prompt_tokens + workload.output_tokens)
    for name, value, what, formula, symbols in (
        ("1M tokens", cost.usd_per_million_tokens, "Prompt and output tokens alike.",
         "per_million = hour / (seconds × rate × (prompt + output)) × million",
         [hour, _HOUR, rate, prompt, output]),
        ("1M prompt tokens", cost.usd_per_million_prompt_tokens,
         "The part of the bill that prefill works for, over prompt tokens.",
         "per_million = hour × share / (seconds × rate × prompt) × million",
         [hour, share, _HOUR, rate, prompt]),
        ("1M output tokens", cost.usd_per_million_generated_tokens,
         "The rest of the bill, over output tokens.",
         "per_million = hour × (1 - share) / (seconds × rate × output) × million",
         [hour, share, _HOUR, rate, output]),
    ):  # fmt: skip
        yield figure(
            f"price of {name}",
            value,
            "$",
            formula,
            [*symbols, Symbol("million", "by which prices are quoted", 1_000_000, "tokens")],
            why="What an API would have to charge to break even at this load; less load, more.",
            picture=what,
            check=f"{both * 3600 / 1e6:,.0f} million tokens an hour, prompt and output.",
            source=source,
        )


def power_figures(power: Power, workload: Workload) -> Iterator[Figure]:
    gpus = Symbol("gpus", "spares and whole nodes included", power.num_gpus, "")
    tdp = Symbol("tdp", "of one GPU, from its data sheet", power.tdp_w_per_gpu, "W")
    yield figure(
        "power at TDP",
        power.peak_power_w,
        "W",
        "peak = gpus × tdp",
        [gpus, tdp],
        why="Cooling and supply are built for it.",
        picture="Every GPU at its limit; hosts, network and cooling come on top.",
        check=f"{power.peak_power_w / power.num_gpus:,.0f} W a GPU.",
        source="the hardware file's board.tdp",
    )
    yield figure(
        "mean power",
        power.average_power_w,
        "W",
        "mean = peak × (idle + (1 - idle) × min(1, busy))",
        [
            Symbol("peak", "power at TDP", power.peak_power_w, "W"),
            Symbol("idle", "share of TDP of a GPU without work", power.idle_fraction, ""),
            Symbol("busy", "share of the time at work, all GPUs", power.busy_fraction, ""),
        ],
        why="It is what the meter counts.",
        picture="A straight line from idle to TDP, by the time at work: an assumption.",
        check="Decode rarely reaches TDP: an upper bound, most likely.",
        source="Fan, Weber, Barroso, ISCA 2007 (linear power model)",
    )
    per_second = workload.arrival_rate_per_s * (workload.prompt_tokens + workload.output_tokens)
    yield figure(
        "energy of 1M tokens",
        power.kwh_per_million_tokens,
        "kWh",
        "kwh = mean / tokens × million / joules",
        [
            Symbol("mean", "power", power.average_power_w, "W"),
            Symbol("tokens", "prompt and output", per_second, "tokens/s"),
            Symbol("million", "by which prices are quoted", 1_000_000, "tokens"),
            Symbol("joules", "of a kWh", 3_600_000, "J"),
        ],
        why="Energy a token compares fleets, whatever a GPU-hour costs.",
        picture="Watts over tokens a second are joules a token.",
        check=f"{power.average_power_w / per_second:.3g} J a token.",
        source="docs/model.md, Money and power",
    )
