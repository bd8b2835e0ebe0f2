"""All figures of a pool as a result."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.formulas.kv_blocks import decode_blocks, request_blocks
from capplan.performance.kv_pool import KvPool
from capplan.results.kv import KvGroupFacts, KvSizing


def kv_sizing(pool: KvPool, context_tokens: int) -> KvSizing:
    """All figures of a pool, at its maximum length and at ``context_tokens``."""
    max_len = pool.max_model_len
    num_sequences = pool.num_sequences(context_tokens)
    return KvSizing(
        block_size=pool.block_size,
        max_model_len=max_len,
        num_padding_layers=pool.layout.num_padding_layers,
        bytes_per_block_per_gpu=pool.bytes_per_block,
        num_blocks=pool.num_blocks,
        printed_tokens=pool.printed_tokens,
        capacity_tokens=num_sequences * context_tokens,
        num_sequences=num_sequences,
        max_concurrency=pool.max_concurrency(max_len),
        max_concurrency_at_context=pool.max_concurrency(context_tokens),
        starts=pool.starts(max_len),
        estimated_max_model_len=pool.longest(max_len),
        groups=tuple(_group_facts(pool, context_tokens)),
    )


def _group_facts(pool: KvPool, context_tokens: int) -> Iterator[KvGroupFacts]:
    """Groups of equal layers as one line each: how many, and what a request takes of them."""
    flight = pool.settings.flight
    for layer in dict.fromkeys(group.layer for group in pool.layout.groups):
        groups = [group for group in pool.layout.groups if group.layer == layer]
        yield KvGroupFacts(
            kind=layer.kind,
            reach_tokens=layer.reach_tokens,
            num_layers=sum(group.num_layers for group in groups),
            num_groups=len(groups),
            block_size=layer.block_size if layer.kind != "state" else None,
            page_bytes_per_gpu=layer.page_bytes,
            blocks_at_max_model_len=len(groups) * request_blocks(layer, pool.max_model_len, flight),
            blocks_in_prefill=len(groups) * request_blocks(layer, context_tokens, flight),
            blocks_in_decode=len(groups) * decode_blocks(layer, context_tokens, flight),
        )
