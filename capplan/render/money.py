"""The bill and the power of a fleet as one table."""

from __future__ import annotations

from capplan import units
from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.gpus import Cost, Power


def money_and_power(cost: Cost | None, power: Power | None) -> Table:
    """Either may be unknown: a price that is not on file, a board without a TDP."""
    rows: list[tuple[str, str, str]] = []
    if cost is not None:
        rows += _money(cost)
    if power is not None:
        rows += _power(power)
    columns = (
        Column("what", "", right=False),
        Column("value", ""),
        Column("note", "", right=False, prose=True),
    )
    return Table("Money and power", columns, rows, in_tsv=False)


def _money(cost: Cost) -> list[tuple[str, str, str]]:
    listed = f"{shows.money(cost.usd_per_gpu_hour)}/GPU-hour"
    gpus = f"{shows.plural(cost.num_gpus, 'GPU')}, spares and whole nodes included"
    prefill = shows.share(cost.prefill_time_fraction)
    return [
        ("price", listed, cost.source),
        ("bill", f"{shows.money(cost.usd_per_hour)}/hour", gpus),
        ("", f"{shows.money(cost.usd_per_month)}/month", f"of {cost.hours_per_month:g} hours"),
        ("1M tokens", shows.money(cost.usd_per_million_tokens), "prompt and output alike"),
        (
            "1M prompt tokens",
            shows.money(cost.usd_per_million_prompt_tokens),
            f"the bill dealt by time: prefill is {prefill} of the work",
        ),
        (
            "1M output tokens",
            shows.money(cost.usd_per_million_generated_tokens),
            "the rest of it",
        ),
    ]


def _power(power: Power) -> list[tuple[str, str, str]]:
    at_tdp = f"{shows.plural(power.num_gpus, 'GPU')} x {units.format_power(power.tdp_w_per_gpu)}"
    idle, busy = shows.share(power.idle_fraction), shows.share(power.busy_fraction)
    return [
        ("power, most", _watts(power.peak_power_w), f"TDP: {at_tdp}; GPUs alone, no hosts"),
        (
            "power, mean",
            _watts(power.average_power_w),
            f"assumed linear: {idle} of TDP idle, TDP at full work; {busy} at work",
        ),
        (
            "1M tokens",
            f"{shows.number(power.kwh_per_million_tokens)} kWh",
            f"prompt and output alike; {shows.number(power.kwh_per_million_output_tokens)} kWh "
            "over output tokens alone",
        ),
    ]


def _watts(watts: float) -> str:
    return units.format_power(watts, digits=shows.DIGITS)
