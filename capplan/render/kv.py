"""The answer of `capplan kv` as a screen."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.kv_log import log_notes, log_tables
from capplan.render.kv_memory import advice_table, memory_table, split_table, stage_table
from capplan.render.kv_pool import pool_tables
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.kv import KvInputs, KvResult

_MOST_FITS = 24


def screen(result: KvResult, inputs: KvInputs, assumptions: Sequence[Assumption]) -> Screen:
    tables = [
        *(log_tables(result.log) if result.log else ()),
        advice_table(result),
        _facts(result),
        split_table(result),
        memory_table(result),
        stage_table(result),
        _layers(result),
        *pool_tables(result),
        _fits(result),
        _blocks(result),
    ]
    notes = [
        *(log_notes(result.log) if result.log else ()),
        _sequence_cap(result, inputs),
        _static(result),
    ]
    return Screen(
        headline=_headline(result),
        tables=[table for table in tables if table],
        notes=[note for note in notes if note],
        plot=lambda width: _plot(result, width),
        assumptions=assumptions,
        next_commands=[
            f"capplan gpus --qps 100 --model {inputs.model} --hardware {inputs.hardware}"
        ],
    )


def _headline(result: KvResult) -> str:
    where = f"{result.num_gpus} x {result.hardware}"
    if not result.num_sequences:
        return f"{result.model} does not fit {where}: {_missing(result)}.{_way_out(result)}"
    sequences = shows.plural(result.num_sequences, "sequence")
    verb = "fits" if result.num_sequences == 1 else "fit"
    low, high = result.num_sequences_low, result.num_sequences_high
    between = "" if low == high else f" ({low:,} to {high:,} by what the estimates leave open)"
    text = (
        f"{result.model} on {where}: {sequences} of {result.context_tokens:,} tokens {verb}"
        f"{between}."
    )
    longest = result.sizing.max_model_len
    if result.sizing.starts:
        return text
    engine = result.memory.engine.split()[0]
    # Others start, and turn such a request away.
    refused = (
        f"{engine} does not start for requests of up to {longest:,}: one needs more"
        if engine == "vLLM"
        else f"A request of {longest:,} does not fit"
    )
    return f"{text} {refused}.{_way_out(result)}"


def _sequence_cap(result: KvResult, inputs: KvInputs) -> str | None:
    """The engine's own limit, where memory allows more."""
    cap = inputs.max_num_seqs * result.dp_attention
    if inputs.reserve_bytes is not None or result.num_sequences <= cap:
        return None
    return f"Memory holds more, but the engine runs {cap:,} requests at once (--max-num-seqs)."


def _missing(result: KvResult) -> str:
    if result.kv_pool_bytes_per_gpu > 0:
        return f"no room for one sequence of {result.context_tokens:,} tokens"
    weights = shows.binary_bytes(result.weight_bytes_per_gpu)
    budget = shows.binary_bytes(result.budget_bytes_per_gpu)
    if result.weight_bytes_per_gpu > result.budget_bytes_per_gpu:
        return f"no room for the weights, {weights} a GPU where the engine may take {budget}"
    rest = shows.binary_bytes(result.reserve_bytes_per_gpu)
    return f"the weights, {weights} a GPU, and {rest} of overheads leave nothing of {budget}"


def _way_out(result: KvResult) -> str:
    if not result.advice:
        return " No single change that was tried makes it fit."
    first = result.advice[0]
    return f" The nearest way out: {first.option} {first.value}."


def _facts(result: KvResult) -> Table:
    columns = (
        Column("quantity", "", right=False),
        Column("value", "whole", right=True),
        Column("per_gpu", f"a GPU at TP {result.tp}", right=True),
    )
    rows = [
        ("parameters", shows.count(result.num_params_total), None),
        ("  active per decoded token", shows.count(result.num_params_active), None),
        (
            f"weights in {result.dtype}",
            shows.binary_bytes(result.weight_bytes),
            shows.binary_bytes(result.weight_bytes_per_gpu),
        ),
        (
            f"KV a token in {result.kv_dtype}",
            f"{result.kv_bytes_per_token:,.0f} B",
            f"{result.kv_bytes_per_token_per_gpu:,.0f} B",
        ),
        (
            f"KV a sequence of {result.context_tokens:,}",
            shows.binary_bytes(result.kv_bytes_per_sequence),
            shows.binary_bytes(result.kv_bytes_per_sequence_per_gpu),
        ),
    ]
    return Table("The model", columns, rows, in_tsv=False)


def _layers(result: KvResult) -> Table:
    columns = (
        Column("name", "layers", right=False),
        Column("kind", "kind", right=False),
        Column("num_layers", "count", shows.count),
        Column("bytes_per_token", "KV a token\nB, a GPU", lambda v: f"{v:,.0f}"),
        Column("window", "window\ntokens", shows.tokens),
        Column("state_bytes_per_sequence", "state a sequence\na GPU", shows.binary_bytes),
    )
    rows = [
        (
            layer.name, layer.kind, layer.num_layers, layer.bytes_per_token, layer.window,
            layer.state_bytes_per_sequence or None,
        )
        for layer in result.layers
    ]  # fmt: skip
    return Table("What is kept", columns, rows)


def _fits(result: KvResult) -> Table:
    columns = (
        Column("dtype", "weights", right=False),
        Column("kv_dtype", "KV", right=False),
        Column("tp", "TP", shows.count),
        Column("weight_bytes_per_gpu", "weights\na GPU", shows.binary_bytes),
        Column("kv_pool_bytes_per_gpu", "KV pool\na GPU", _pool),
        Column("num_sequences", "sequences", shows.count),
        Column("pool_tokens", "tokens", shows.tokens),
        Column("longest_context_tokens", "longest\ncontext", shows.tokens),
    )
    rows = [[getattr(fit, column.key) for column in columns] for fit in result.fits]
    title = f"What fits, in sequences of {result.context_tokens:,} tokens"
    return Table(title, columns, rows[:_MOST_FITS])


def _pool(size: float) -> str:
    return shows.binary_bytes(size) if size > 0 else "none"


def _blocks(result: KvResult) -> Table:
    columns = (
        Column("block_size", "block\ntokens", shows.count),
        Column("mean_waste_tokens", "waste a\nrequest", shows.number),
        Column("paged_utilisation", "used", shows.share),
        Column("paged_slots", "slots", shows.count),
        Column("num_requests", "held\nat once", shows.count),
        Column("block_table_bytes", "its table\na sequence", _table_size),
        Column("contiguous_bytes", "one run\na layer", shows.binary_bytes),
    )
    rows = [[getattr(block, column.key) for column in columns] for block in result.blocks]
    note = (
        "Only the last block of a request is partly empty. GPUs read 128 B at a time: every run "
        "above is whole reads, so larger blocks buy shorter tables, not faster reads."
        if all(block.contiguous_bytes % 128 == 0 for block in result.blocks)
        else "Runs that are not a multiple of 128 B waste part of a memory transaction."
    )
    title = f"Block size, over {result.num_lengths:,} requests"
    return Table(title, columns, rows, note)


def _table_size(size: int) -> str:
    return f"{size:,} B"


def _static(result: KvResult) -> str:
    used = next(b for b in result.blocks if b.block_size == result.block_size)
    return (
        f"{result.num_lengths:,} requests hold {used.used_tokens:,} tokens. Static pre-allocation "
        f"of {result.static_length:,} each takes {result.static_slots:,} slots: "
        f"{shows.share(result.static_utilisation)} used. Paged in blocks of {used.block_size}: "
        f"{used.paged_slots:,} slots, {shows.share(used.paged_utilisation)} used.{_held(result)}"
    )


def _held(result: KvResult) -> str:
    used = next(b for b in result.blocks if b.block_size == result.block_size)
    if used.num_requests is None or result.num_static_requests is None:
        return ""
    return (
        f" The pool holds {shows.plural(result.num_static_requests, 'such request')} static, "
        f"{used.num_requests:,} paged."
    )


def _plot(result: KvResult, width: int) -> str:
    from capplan.render.plots.blocks import blocks_plot
    from capplan.render.plots.in_terminal import text_of

    return text_of(blocks_plot(result), width)
