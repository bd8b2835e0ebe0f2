"""The KV pool in blocks: what the engine allocates, prints and admits."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.kv import KvResult, KvSizing


def pool_tables(result: KvResult) -> list[Table]:
    """The pool, and the groups where there are several kinds; nothing where nothing is kept."""
    sizing = result.sizing
    tables = [_pool(result)] if sizing.groups else []
    return [*tables, _groups(result)] if _is_hybrid(sizing) else tables


def _pool(result: KvResult) -> Table:
    sizing = result.sizing
    longest, context = sizing.max_model_len, result.context_tokens
    mean = result.mean_length_tokens
    rows = [
        ("tokens a block", shows.count(sizing.block_size)),
        ("bytes a block", shows.binary_bytes(sizing.bytes_per_block_per_gpu)),
        ("blocks", shows.count(sizing.num_blocks)),
        ('"GPU KV cache size" in its log', f"{sizing.printed_tokens:,} tokens"),
        (f"held in requests of {context:,}", f"{sizing.capacity_tokens:,} tokens"),
        (f"sequences at the mean of {mean:,}", shows.count(result.num_sequences_at_mean_length)),
        (f"sequences at {context:,}", shows.count(result.num_sequences)),
        (f"sequences at {longest:,}", shows.count(result.num_sequences_at_max_model_len)),
        ("longest context of one request", f"{result.longest_context_tokens:,} tokens"),
        (f"concurrency at {longest:,}", _times(sizing.max_concurrency)),
        (f"concurrency at {context:,}", _times(sizing.max_concurrency_at_context)),
        ("estimated maximum length", f"{sizing.estimated_max_model_len:,} tokens"),
    ]
    if sizing.num_padding_layers:
        rows.append(("padding layers", shows.count(sizing.num_padding_layers)))
    columns = (Column("quantity", "", right=False), Column("value", "a GPU"))
    title = f"KV pool in blocks ({result.memory.engine})"
    if result.dp_attention > 1:
        title += f", of each of {result.dp_attention} copies of the attention"
    return Table(title, columns, rows, _note(result), in_tsv=False)


def _groups(result: KvResult) -> Table:
    sizing = result.sizing
    columns = (
        Column("kind", "layers", right=False),
        Column("num_layers", "count", shows.count),
        Column("num_groups", "groups", shows.count),
        Column("block_size", "block\ntokens", shows.count),
        Column("reach_tokens", "window\ntokens", shows.tokens),
        Column("page_bytes_per_gpu", "page\na layer", shows.binary_bytes),
        Column("blocks_at_max_model_len", "blocks,\nlongest", shows.count),
        Column("blocks_in_prefill", "in\nprefill", shows.count),
        Column("blocks_in_decode", "in\ndecode", shows.count),
    )
    rows = [[getattr(group, column.key) for column in columns] for group in sizing.groups]
    title = (
        f"Blocks of one request, at {sizing.max_model_len:,} and at {result.context_tokens:,} "
        "tokens"
    )
    return Table(title, columns, rows)


def _note(result: KvResult) -> str | None:
    sizing = result.sizing
    if not _is_hybrid(sizing):
        return None
    by_concurrency = sizing.printed_tokens == int(sizing.max_concurrency * sizing.max_model_len)
    rule = (
        "concurrency at the maximum length times that length"
        if by_concurrency
        else "as if each group of layers had its share of the blocks"
    )
    return (
        f"The log's size is {rule}. It is not the "
        f"capacity: windows and states take a fixed part of each request. The {sizing.num_blocks:,}"
        f" blocks hold {shows.plural(sizing.num_sequences, 'request')} of {result.context_tokens:,}"
        " tokens, one of them in its prefill; the engine's concurrency takes all to be in theirs."
    )


def _is_hybrid(sizing: KvSizing) -> bool:
    return any(group.kind != "full" for group in sizing.groups)


def _times(value: float) -> str:
    return f"{value:,.2f} x"
