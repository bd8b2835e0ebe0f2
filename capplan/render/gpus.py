"""The answer of `capplan gpus` as a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from capplan.render import shows
from capplan.render.bands import NAMES, inside_note, one_each_table
from capplan.render.money import money_and_power
from capplan.render.screen import Column, Screen, Table
from capplan.render.sizing import (
    WHY_NOT,
    kinds_table,
    levels_table,
    limit_name,
    months_table,
    proof_notes,
    robustness_table,
    trade_table,
)
from capplan.results.assumptions import Assumption
from capplan.results.gpus import Bounds, GpusPlan, GpusResult, ReplicaFacts, ServiceLevel
from capplan.results.gpus import GpusInputs as Inputs

NOT_MEASURED = (
    "These are roofline bounds: means, without queueing, at the achieved rates under Assumed; P99 "
    "under bursts needs more. Their bands are those of servers under vLLM V1: how far predictions "
    "with engine and queue were off."
)
MOST_COMPARED = 16  # rows
SIMULATED = (
    "Simulated is the engine's own scheduler on the calibrated step times; the bounds beside it "
    "are roofline arithmetic: means, no queueing, a flat reserve of memory."
)


def screen(result: GpusResult, inputs: Inputs, assumptions: Sequence[Assumption]) -> Screen:
    """The plan in full; beside it the other accelerators where several were asked for."""
    plan: GpusPlan = result
    tables = [_comparison(result)] if len(result.candidates) > 1 else []
    if result.sizing is not None:
        tables += _simulated_tables(result, inputs)
    else:
        tables += _plan_tables(plan, inputs) if plan.feasible else _infeasible_tables(plan)
    return Screen(
        headline=_headline(plan, inputs),
        tables=tables,
        notes=_simulated_notes(result, inputs) if result.sizing else _notes(plan),
        assumptions=assumptions,
        next_commands=_next(plan, inputs),
        tsv=_for_programs(result),
    )


def _headline(plan: GpusPlan, inputs: Inputs) -> str:
    what = f"{shows.rate(inputs.arrival_rate_per_s)} of {inputs.model_name}"
    if plan.num_gpus is None or plan.num_replicas is None or plan.num_nodes is None:
        tps = ", ".join(str(option.tp) for option in plan.tp_options)
        return (
            f"No number of {plan.hardware} serves {what}: {WHY_NOT[plan.binding_limit]} (TP {tps})."
        )
    text = (
        f"{plan.num_gpus} x {plan.hardware} for {what}: "
        f"{shows.plural(plan.num_replicas, 'replica')} x TP {plan.tp}.\n"
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
    tables = [_service_levels(plan.service_levels)]
    if plan.bands:
        tables.append(one_each_table(plan.bands))
    tables.append(_bounds(plan, inputs))
    if len(plan.tp_options) > 1:
        tables.append(_tp_options(plan))
    if plan.cost or plan.power:
        tables.append(money_and_power(plan.cost, plan.power))
    return tables


def _simulated_tables(result: GpusResult, inputs: Inputs) -> list[Table]:
    assert result.sizing is not None
    several = len(result.candidates) > 1
    tables = [levels_table(result)] if result.service_levels else []
    if result.bands:
        tables.append(one_each_table(result.bands))
    if result.sizing.kinds:
        tables.append(kinds_table(result.sizing, several))
    if result.num_gpus is None:
        return tables + _infeasible_tables(result)
    if result.bounds is not None:
        tables.append(_bounds(result, inputs))
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
    return [*proof_notes(result, inputs.arrival_rate_per_s), *_inside(result), SIMULATED]


def _inside(plan: GpusPlan) -> list[str]:
    """Limits that lie within the band of what they limit."""
    levels = {
        (level.name, "mean" if level.percentile is None else f"P{level.percentile:g}"): level
        for level in plan.service_levels
    }
    found = []
    for band in plan.bands:
        level = levels.get((NAMES[band.figure], band.statistic))
        note = inside_note(band, level.limit_s) if level is not None else None
        found += [note] if note else []
    return found


def _service_levels(levels: Sequence[ServiceLevel]) -> Table:
    columns = (
        Column("met", "", lambda met: "✓ met" if met else "✗ missed", right=False),
        Column("name", "", right=False),
        Column("predicted_s", "predicted", shows.duration),
        Column("limit_s", "limit", shows.duration),
        Column("headroom_fraction", "headroom", shows.share),
    )
    rows = [
        (level.met, level.name, level.predicted_s, level.limit_s, _headroom(level))
        for level in levels
    ]
    return Table("Service levels (means, no queueing)", columns, rows, in_tsv=False)


def _headroom(level: ServiceLevel) -> float:
    return max(0.0, 1 - (level.predicted_s or 0.0) / level.limit_s)


def _bounds(plan: GpusPlan, inputs: Inputs) -> Table:
    bounds, replica = plan.bounds, plan.replica
    assert bounds is not None
    assert replica is not None
    prompt_rate = inputs.arrival_rate_per_s * inputs.prompt_tokens
    prefill = (
        f"{shows.tokens(prompt_rate)} prompt tok/s; a replica computes "
        f"{shows.tokens(replica.prefill_tokens_per_s)}"
    )
    rows = [
        ("memory", bounds.num_gpus_memory, _why_memory(plan, bounds, replica)),
        ("decode", bounds.num_gpus_decode, _why_decode(plan, inputs, replica)),
        ("prefill", bounds.num_gpus_prefill, prefill),
        ("combined", bounds.num_gpus_combined, _why_combined(inputs, replica)),
    ]
    columns = (
        Column("bound", "bound", lambda name: name + (" <-" if name == plan.binding else "")),
        Column("num_gpus", "GPUs", shows.count),
        Column("why", "why", right=False, prose=True),
    )
    columns = (Column("bound", "bound", columns[0].show, right=False), *columns[1:])
    return Table("What each limit asks for (<- binds)", columns, rows, in_tsv=False)


def _why_memory(plan: GpusPlan, bounds: Bounds, replica: ReplicaFacts) -> str:
    pool = f"{shows.binary_bytes(replica.kv_pool_bytes_per_gpu)} of pool a GPU"
    in_flight = f"{shows.number(plan.concurrency)} in flight (Little) hold "
    demand = shows.binary_bytes(plan.kv_demand_bytes)
    per_gpu = plan.concurrency * replica.kv_bytes_per_sequence_per_gpu
    if per_gpu > bounds.num_gpus_memory / (plan.tp or 1) * replica.kv_pool_bytes_per_gpu:
        return (
            f"at the limits {in_flight}{demand} of KV; served sooner, they hold less: the "
            f"combined bound minds the {pool}"
        )
    return f"{in_flight}{demand} of KV; {pool}"


def _why_decode(plan: GpusPlan, inputs: Inputs, replica: ReplicaFacts) -> str:
    text = f"{shows.tokens(plan.output_tokens_per_s)} tok/s; a replica makes "
    if inputs.replica_output_tokens_per_s is not None:
        return text + f"{shows.tokens(inputs.replica_output_tokens_per_s)} (given)"
    made = shows.tokens(replica.output_tokens_per_s)
    return text + f"{made} with {replica.max_decode_batch} at once"


def _why_combined(inputs: Inputs, replica: ReplicaFacts) -> str:
    if inputs.replica_output_tokens_per_s is not None:
        return "the largest of the above"
    return (
        f"prefill and decode share every step: a replica carries "
        f"{shows.rate(replica.requests_per_s)} with {shows.number(replica.decode_batch)} decoding"
    )


def _tp_options(plan: GpusPlan) -> Table:
    columns = (
        Column("tp", "TP", shows.count),
        Column("num_gpus", "GPUs", shows.count),
        Column("verdict", "", right=False),
    )
    rows = [
        (
            option.tp,
            option.num_gpus,
            "chosen: fewest GPUs" if option.tp == plan.tp else WHY_NOT.get(option.verdict, ""),
        )
        for option in plan.tp_options
    ]
    return Table("Tensor parallelism", columns, rows, in_tsv=False)


def _infeasible_tables(plan: GpusPlan) -> list[Table]:
    if not plan.suggestions:
        return []
    columns = (
        Column("option", "change", right=False),
        Column("value", "to", right=False),
        Column("why", "because", right=False, prose=True),
    )
    rows = [(s.option, s.value, s.why) for s in plan.suggestions]
    return [Table("Nearest feasible", columns, rows, in_tsv=False)]


def _comparison(result: GpusResult) -> Table:
    shown = result.candidates[:MOST_COMPARED]
    columns = (
        Column("hardware", "accelerator", right=False),
        Column("num_gpus", "GPUs", shows.count),
        Column("tp", "TP", shows.count),
        Column("num_gpus_rounded", "with spare,\nwhole nodes", shows.count),
        Column("usd_per_hour", "cost\n$/hour", shows.money),
        Column("usd_per_million_output_tokens", "$ per 1M\noutput tokens", shows.money),
        Column("binding", "binds", right=False, prose=True),
    )
    rows = [
        (
            plan.hardware,
            plan.num_gpus,
            plan.tp,
            plan.num_gpus_rounded,
            plan.usd_per_hour,
            plan.usd_per_million_output_tokens,
            _binds(plan),
        )
        for plan in shown
    ]
    left = len(result.candidates) - len(shown)
    note = f"and {left:,} more that cannot be better or do not fit: --json" if left else None
    return Table("Accelerators, cheapest first", columns, rows, note=note, in_tsv=False)


def _binds(plan: GpusPlan) -> str:
    if not plan.feasible:
        return f"✗ {plan.why or WHY_NOT.get(plan.binding_limit, plan.binding_limit)}"
    return limit_name(plan.binding_limit) if plan.sustained else plan.binding


def _notes(plan: GpusPlan) -> list[str]:
    notes = []
    if plan.busy_fraction is not None and plan.busy_fraction_with_spares is not None:
        spares = f" ({shows.share(plan.busy_fraction_with_spares)} over the spares too)"
        notes.append(
            f"At this rate each replica runs at {shows.share(plan.busy_fraction)} of its bound"
            + (spares if plan.num_spare_replicas else "")
            + ". Waiting grows steeply towards 100 %: leave room."
        )
    return [*notes, *_inside(plan), NOT_MEASURED]


def _next(plan: GpusPlan, inputs: Inputs) -> list[str]:
    hardware, model = plan.hardware, inputs.model
    commands = [f"capplan roofline --model {model} --hardware {hardware}"]
    commands.append(f"capplan kv --model {model} --hardware {hardware}")
    return commands


def _for_programs(result: GpusResult) -> Table:
    """One row an accelerator."""
    names = [
        "hardware", "feasible", "binding", "binding_limit", "tp", "num_replicas", "num_gpus",
        "num_gpus_rounded", "concurrency", "usd_per_hour", "usd_per_million_output_tokens",
    ]  # fmt: skip
    bounds = [field.name for field in fields(Bounds)]
    beside = ["usd_per_month", "peak_power_w", "average_power_w"]
    rows = [
        [getattr(plan, name) for name in names]
        + [plan.cost.usd_per_month if plan.cost else None]
        + [getattr(plan.power, name) if plan.power else None for name in beside[1:]]
        + [getattr(plan.bounds, name) if plan.bounds else None for name in bounds]
        for plan in result.candidates
    ]
    return Table("plans", [Column(name, name) for name in [*names, *beside, *bounds]], rows)
