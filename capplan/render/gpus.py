"""The answer of `capplan gpus` as a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from capplan.render import shows
from capplan.render.band_columns import end_keys, value_key, with_ends
from capplan.render.bands import COUNTS, NAMES, inside_note, one_each_table
from capplan.render.gpus_tables import (
    bounds_table,
    comparison_tables,
    means_table,
    suggestion_tables,
    tp_table,
)
from capplan.render.limit_names import WHY_NOT
from capplan.render.money import money_and_power
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.bands import statistic_name
from capplan.results.gpus import Bounds, GpusPlan, GpusResult
from capplan.results.gpus import GpusInputs as Inputs

NOT_MEASURED = (
    "These are roofline bounds: means, without queueing, at the achieved rates under Assumed; P99 "
    "under bursts needs more. Their bands are those of servers under vLLM V1: how far predictions "
    "with engine and queue were off."
)
SIMULATED = (
    "Simulated is the engine's own scheduler on the calibrated step times; the bounds beside it "
    "are roofline arithmetic: means, no queueing, a flat reserve of memory."
)


def screen(result: GpusResult, inputs: Inputs, assumptions: Sequence[Assumption]) -> Screen:
    """The plan in full; beside it the other accelerators where several were asked for."""
    plan: GpusPlan = result
    tables = comparison_tables(result) if len(result.candidates) > 1 else []
    if result.sizing is not None:
        tables += _simulated_tables(result, inputs)
    else:
        tables += _plan_tables(plan, inputs) if plan.feasible else suggestion_tables(plan)
    return Screen(
        headline=headline(plan, inputs),
        tables=tables,
        notes=_simulated_notes(result, inputs) if result.sizing else _notes(plan),
        assumptions=assumptions,
        next_commands=_next(plan, inputs),
        tsv=_for_programs(result),
    )


def shape_of(plan: GpusPlan) -> str:
    """`TP 2`, or `TP 1 x DP 8 x EP 8`: the degrees of a replica."""
    served = plan.served_as
    others = (served.pp, served.dp, served.ep) if served else (1, 1, 1)
    return " x ".join(shows.degrees(plan.tp, *others))


def headline(plan: GpusPlan, inputs: Inputs) -> str:
    what = f"{shows.rate(inputs.arrival_rate_per_s)} of {inputs.model_name}"
    if plan.num_gpus is None or plan.num_replicas is None or plan.num_nodes is None:
        tps = ", ".join(str(option.tp) for option in plan.tp_options)
        return (
            f"No number of {plan.hardware} serves {what}: {WHY_NOT[plan.binding_limit]} (TP {tps})."
        )
    text = (
        f"{plan.num_gpus} x {plan.hardware} for {what}: "
        f"{shows.plural(plan.num_replicas, 'replica')} x {shape_of(plan)}.\n"
    )
    spares = "no spare"
    if plan.num_spare_replicas:
        spares = f"{shows.plural(plan.num_spare_replicas, 'spare replica')} included"
    nodes = f"{shows.plural(plan.num_nodes, 'node')} of {plan.gpus_per_node}"
    text += f"Get {plan.num_gpus_rounded}: {nodes}, {spares}"
    if plan.usd_per_hour is not None and plan.usd_per_million_output_tokens is not None:
        text += (
            f"; {shows.money(plan.usd_per_hour)}/hour, "
            f"{shows.money(plan.usd_per_million_output_tokens)} per 1M output tokens"
        )
    return text + "." + _at_risk(plan)


def _at_risk(plan: GpusPlan) -> str:
    """`18 if the model is optimistic by its 90th percentile`."""
    sizing = plan.sizing if isinstance(plan, GpusResult) else None
    if sizing is None:
        return ""
    worse = next((v for v in sizing.variations if "optimistic" in v.what), None)
    if worse is None or worse.num_gpus is None or worse.num_gpus == plan.num_gpus:
        return ""
    return f" {worse.num_gpus:,} if the model is optimistic by its 90th percentile."


def _plan_tables(plan: GpusPlan, inputs: Inputs) -> list[Table]:
    tables = [means_table(plan.service_levels)]
    if plan.bands:
        tables.append(one_each_table(plan.bands))
    tables.append(bounds_table(plan, inputs))
    if len(plan.tp_options) > 1:
        tables.append(tp_table(plan))
    if plan.cost or plan.power:
        tables.append(money_and_power(plan.cost, plan.power))
    return tables


def _simulated_tables(result: GpusResult, inputs: Inputs) -> list[Table]:
    # What bounds alone do not show they do not wait for.
    from capplan.render.sizing import kinds_tables, levels_table, trade_table
    from capplan.render.sizing_moves import months_table, robustness_table

    assert result.sizing is not None
    several = len(result.candidates) > 1
    tables = [levels_table(result)] if result.service_levels else []
    if result.bands:
        tables.append(one_each_table(result.bands))
    if result.sizing.kinds:
        tables += kinds_tables(result.sizing, several)
    if result.num_gpus is None:
        return tables + suggestion_tables(result)
    if result.bounds is not None:
        tables.append(bounds_table(result, inputs))
    if result.sizing.variations:
        tables.append(robustness_table(result))
    if result.sizing.months:
        tables.append(months_table(result.sizing))
    if len(result.sizing.trade_offs) > 1:
        tables.append(trade_table(result.sizing, several))
    if result.cost or result.power:
        tables.append(money_and_power(result.cost, result.power))
    return tables


def _simulated_notes(result: GpusResult, inputs: Inputs) -> list[str]:
    from capplan.render.sizing import proof_notes

    return [*proof_notes(result, inputs.arrival_rate_per_s), *inside_notes(result), SIMULATED]


def inside_notes(plan: GpusPlan) -> list[str]:
    """Limits that lie within the band of what they limit."""
    levels = {
        (level.name, statistic_name(level.percentile, level.kind)): level
        for level in plan.service_levels
    }
    found = []
    for band in plan.bands:
        level = levels.get((NAMES[band.figure], band.statistic))
        note = inside_note(band, level.limit_s) if level is not None else None
        found += [note] if note else []
    return found


def _notes(plan: GpusPlan) -> list[str]:
    notes = []
    if plan.busy_fraction is not None and plan.busy_fraction_with_spares is not None:
        spares = f" ({shows.share(plan.busy_fraction_with_spares)} over the spares too)"
        notes.append(
            f"At this rate each replica runs at {shows.share(plan.busy_fraction)} of its bound"
            + (spares if plan.num_spare_replicas else "")
            + ". Waiting grows steeply towards 100 %: leave room."
        )
    return [*notes, *inside_notes(plan), NOT_MEASURED]


def _next(plan: GpusPlan, inputs: Inputs) -> list[str]:
    hardware, model = plan.hardware, inputs.model
    commands = [f"capplan roofline --model {model} --hardware {hardware}"]
    commands.append(f"capplan kv --model {model} --hardware {hardware}")
    return commands


def _for_programs(result: GpusResult) -> Table:
    """One row an accelerator, with every limit's figure and the ends of all bands."""
    limits = dict.fromkeys(
        value_key(band) for plan in result.candidates for band in plan.bands
        if band.figure not in COUNTS
    )  # fmt: skip
    rows = [_row(plan, list(limits)) for plan in result.candidates]
    columns = [Column(name, name) for name in rows[0]]
    return Table("plans", columns, [list(row.values()) for row in rows])


def _row(plan: GpusPlan, limits: Sequence[str]) -> dict[str, Any]:
    names = [
        "hardware", "feasible", "binding", "binding_limit", "tp", "num_replicas", "num_gpus",
        "num_gpus_rounded", "concurrency", "usd_per_hour", "usd_per_million_output_tokens",
    ]  # fmt: skip
    row: dict[str, Any] = {name: getattr(plan, name) for name in names}
    row["usd_per_month"] = plan.cost.usd_per_month if plan.cost else None
    for name in ("peak_power_w", "average_power_w"):
        row[name] = getattr(plan.power, name) if plan.power else None
    values = {value_key(band): band.value for band in plan.bands}
    row = with_ends(row | {key: values.get(key) for key in limits}, plan.bands, also=COUNTS)
    for field in fields(Bounds):
        value = getattr(plan.bounds, field.name) if plan.bounds else None
        if not field.name.endswith("_band"):
            row[field.name] = value
            continue
        keys = end_keys(field.name.removesuffix("_band"))
        ends = (None, None) if value is None else (value.low, value.high)
        row.update(zip(keys, ends, strict=True))
    return row
