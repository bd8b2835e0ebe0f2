"""The tables of an answer of `capplan gpus`: bounds, degrees, suggestions, accelerators."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.bands import GPUS, band_text, count_range, find_band
from capplan.render.limit_names import WHY_NOT, limit_name
from capplan.render.screen import Column, Table
from capplan.results.gpus import Bounds, GpusPlan, GpusResult, ReplicaFacts, ServiceLevel
from capplan.results.gpus import GpusInputs as Inputs

MOST_COMPARED = 16  # rows


def means_table(levels: Sequence[ServiceLevel]) -> Table:
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


def bounds_table(plan: GpusPlan, inputs: Inputs) -> Table:
    bounds, replica = plan.bounds, plan.replica
    assert bounds is not None
    assert replica is not None
    prompt_rate = inputs.arrival_rate_per_s * inputs.prompt_tokens
    prefill = (
        f"{shows.tokens(prompt_rate)} prompt tok/s; a replica computes "
        f"{shows.tokens(replica.prefill_tokens_per_s)}"
    )
    rows = [
        ("memory", bounds.num_gpus_memory, None, _why_memory(plan, bounds, replica)),
        ("decode", bounds.num_gpus_decode, bounds.num_gpus_decode_band,
         _why_decode(plan, inputs, replica)),
        ("prefill", bounds.num_gpus_prefill, bounds.num_gpus_prefill_band, prefill),
        ("combined", bounds.num_gpus_combined, bounds.num_gpus_combined_band,
         _why_combined(inputs, replica)),
    ]  # fmt: skip
    columns = (
        Column(
            "bound", "bound", lambda name: name + (" <-" if name == plan.binding else ""),
            right=False,
        ),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("why", "why", right=False, prose=True),
    )  # fmt: skip
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


def tp_table(plan: GpusPlan) -> Table:
    columns = (
        Column("tp", "TP", shows.count),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("verdict", "", right=False),
    )
    rows = [
        (
            option.tp,
            option.num_gpus,
            option.num_gpus_band,
            "chosen: fewest GPUs" if option.tp == plan.tp else WHY_NOT.get(option.verdict, ""),
        )
        for option in plan.tp_options
    ]
    return Table("Tensor parallelism", columns, rows, in_tsv=False)


def suggestion_tables(plan: GpusPlan) -> list[Table]:
    if not plan.suggestions:
        return []
    columns = (
        Column("option", "change", right=False),
        Column("value", "to", right=False),
        Column("why", "because", right=False, prose=True),
    )
    rows = [(s.option, s.value, s.why) for s in plan.suggestions]
    return [Table("Nearest feasible", columns, rows, in_tsv=False)]


def comparison_tables(result: GpusResult) -> list[Table]:
    """The accelerators that serve, and why the others do not or are no better."""
    shown = result.candidates[:MOST_COMPARED]
    left = len(result.candidates) - len(shown)
    note = f"and {left:,} more that cannot be better or do not fit: --json" if left else None
    over = [(plan.hardware, _why_not(plan)) for plan in shown if not plan.feasible]
    columns = (
        Column("hardware", "accelerator", right=False),
        Column("why", "why", right=False, prose=True),
    )
    serving = _serving([plan for plan in shown if plan.feasible], None if over else note)
    passed = Table("Accelerators passed over", columns, over, note=note, in_tsv=False)
    return [table for table in (serving, passed) if table.rows]


def _serving(shown: Sequence[GpusPlan], note: str | None) -> Table:
    columns = (
        Column("hardware", "accelerator", right=False),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", band_text),
        Column("tp", "TP", shows.count),
        Column("num_gpus_rounded", "with spare,\nwhole nodes", shows.count),
        Column("usd_per_hour", "cost\n$/hour", shows.money),
        Column("usd_per_million_output_tokens", "$ per 1M\noutput tokens", shows.money),
        Column("binding", "binds", right=False),
    )
    rows = [
        (
            plan.hardware,
            plan.num_gpus,
            find_band(plan.bands, GPUS, "mean"),
            plan.tp,
            plan.num_gpus_rounded,
            plan.usd_per_hour,
            plan.usd_per_million_output_tokens,
            limit_name(plan.binding_limit) if plan.sustained else plan.binding,
        )
        for plan in shown
    ]
    return Table("Accelerators, cheapest first", columns, rows, note=note, in_tsv=False)


def _why_not(plan: GpusPlan) -> str:
    reason = WHY_NOT.get(plan.binding_limit, plan.binding_limit)
    if plan.why and plan.binding_limit not in ("dominated", "unsupported"):
        return f"✗ {reason}: {plan.why}"
    return f"✗ {plan.why or reason}"
