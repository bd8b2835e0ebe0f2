"""From a model to the blocks of its KV pool on one replica, as vLLM would allocate them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from capplan.formulas import kv_blocks
from capplan.formulas.kv_blocks import decode_blocks, request_blocks
from capplan.performance.kv_layout import KvSettings, kv_layout
from capplan.results.kv import KvGroupFacts, KvSizing
from capplan.specs.model import ModelSpec

# Requests of a model that keeps nothing: no pool limits them.
UNBOUNDED_SEQUENCES = 10**6


class KvPool:
    """The blocks of one replica's pool: what it holds, and what requests take of it.

    ``available_bytes`` is the room for KV on a GPU, or on a GPU of each pipeline stage; the
    stage with the fewest blocks decides, as all stages use the same block table.
    """

    def __init__(
        self,
        model: ModelSpec,
        kv_dtype: str,
        tp: int,
        settings: KvSettings,
        available_bytes: float | Sequence[float],
    ) -> None:
        self.settings = settings
        self.max_model_len = settings.max_model_len or model.max_context_tokens
        self.layout = kv_layout(model, kv_dtype, tp, settings)
        rooms = available_bytes if isinstance(available_bytes, Sequence) else [available_bytes]
        if len(rooms) == 1:
            rooms = [*rooms] * settings.pp
        stages = zip(rooms, self.layout.stage_bytes_per_block, strict=True)
        # The stage that decides; one without KV layers never does.
        self.available_bytes, self.bytes_per_block = min(
            stages, key=lambda stage: stage[0] / stage[1] if stage[1] else float("inf")
        )

    @property
    def keeps_nothing(self) -> bool:
        return not self.layout.groups

    @cached_property
    def num_blocks(self) -> int:
        """The block that is never handed out included; one where the model keeps nothing."""
        if self.keeps_nothing:
            return 1
        return kv_blocks.num_blocks(self.available_bytes, self.bytes_per_block)

    @property
    def usable_blocks(self) -> int:
        return max(0, self.num_blocks - 1)

    @cached_property
    def block_size(self) -> int:
        """Tokens a block of the layers whose KV grows; as set where none does."""
        sizes = [g.layer.block_size for g in self.layout.groups if g.layer.kind != "state"]
        return min(sizes, default=self.settings.block_size)

    def request_blocks(self, tokens: int) -> int:
        """What the engine reckons with: the most that a request takes, in its prefill."""
        flight = self.settings.flight
        return kv_blocks.blocks_of(request_blocks, self.layout.groups, tokens, flight)

    def decode_blocks(self, tokens: int) -> int:
        """What a request keeps while it decodes; less, where windows or states are."""
        flight = self.settings.flight
        return kv_blocks.blocks_of(decode_blocks, self.layout.groups, tokens, flight)

    def decode_bytes(self, tokens: int) -> int:
        """The same in bytes of one GPU, in whole blocks."""
        return self.decode_blocks(tokens) * self.bytes_per_block

    def max_concurrency(self, tokens: int) -> float:
        """Requests of a length by the engine's own reckoning."""
        if self.keeps_nothing:
            return float(UNBOUNDED_SEQUENCES)
        return kv_blocks.max_concurrency(self.num_blocks, self.request_blocks(tokens))

    def num_sequences(self, tokens: int) -> int:
        """Requests of a length at once: one still in its prefill, the others decoding."""
        if self.keeps_nothing:
            return 0 if self.available_bytes < 0 else UNBOUNDED_SEQUENCES
        left = self.usable_blocks - self.request_blocks(tokens)
        return 0 if left < 0 else left // self.decode_blocks(tokens) + 1

    def starts(self, max_model_len: int) -> bool:
        """The engine's start-up check."""
        if self.keeps_nothing:
            return self.available_bytes >= 0
        needed = self.request_blocks(max_model_len)
        return kv_blocks.starts(needed, self.bytes_per_block, self.available_bytes)

    def longest(self, most: int) -> int:
        """The longest request that passes the start-up check: "estimated maximum length"."""
        return kv_blocks.longest(self.starts, most)

    @property
    def printed_tokens(self) -> int:
        """The size of the cache as the engine's log has it."""
        if self.settings.printed_by_groups and not self.keeps_nothing:
            num_groups = len(self.layout.groups)
            return kv_blocks.printed_tokens_by_groups(
                self.num_blocks, num_groups, self.block_size, self.settings.dcp
            )
        concurrency = self.max_concurrency(self.max_model_len)
        return kv_blocks.printed_tokens(concurrency, self.max_model_len)


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
