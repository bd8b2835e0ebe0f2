"""From a model to the blocks of its KV pool on one replica, as vLLM would allocate them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from capplan.formulas import kv_blocks
from capplan.formulas.kv_blocks import decode_blocks, request_blocks
from capplan.performance.kv_layout import KvSettings, kv_layout
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
