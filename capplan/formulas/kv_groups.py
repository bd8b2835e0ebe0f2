"""How an engine lays the KV of many kinds of layers into blocks of one size.

Rules of vLLM's V1 KV-cache manager (`v1/core/kv_cache_utils.py`, `v1/kv_cache_interface.py`).
Every layer has a *page*: its bytes in one block. Layers of one kind form one group; several
kinds are dealt into groups of equally many layers, each group with blocks of its own out of one
pool, so that a block has the same bytes whoever takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["full", "sliding", "chunked", "state"]

# Kernels read attention blocks in runs of this many tokens (FlashAttention, FlashInfer, Triton).
KERNEL_BLOCK_TOKENS = 16
# A kind that has up to this many times the layers of the smallest is not split but padded.
_SPLIT_FROM = 1.5


@dataclass(frozen=True, slots=True)
class KvLayer:
    """What one layer keeps on one GPU.

    ``page_bytes`` is one block of ``block_size`` tokens, or the state of one sequence.
    ``reach_tokens`` is the window of a sliding layer, the chunk of a chunked one.
    """

    kind: Kind
    page_bytes: int
    block_size: int
    reach_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class KvGroup:
    """Layers that share a table of blocks; ``positions`` are their places in the stack."""

    layers: tuple[KvLayer, ...]
    positions: tuple[int, ...]

    @property
    def layer(self) -> KvLayer:
        """What decides how many blocks a request takes; the same for all layers of the group."""
        return self.layers[0]

    @property
    def num_layers(self) -> int:
        return len(self.layers)


def group_size(layer_counts: Sequence[int]) -> int:
    """Layers a group: the smallest count; the largest where padding to it costs little.

    >>> group_size([52, 10]), group_size([12, 13]), group_size([20, 30])
    (10, 13, 20)
    """
    least, most = min(layer_counts), max(layer_counts)
    return most if most < least * _SPLIT_FROM else least


def padding_layers(num_layers: int, size: int) -> int:
    """Empty places when layers of one kind fill whole groups; vLLM's log names them.

    >>> padding_layers(52, 10), padding_layers(30, 10)
    (8, 0)
    """
    return -num_layers % size


def group_layers(layers: Sequence[KvLayer], *, hybrid_manager: bool = True) -> tuple[KvGroup, ...]:
    """The groups of a stack of layers, kinds in the order of their first layer.

    Without the hybrid manager, sliding and chunked layers beside full ones are kept at full
    length. Layers of one kind make one group even if their pages differ.

    >>> page = 32_768
    >>> stack = [KvLayer("sliding", page, 16, 128), KvLayer("full", page, 16)] * 18
    >>> [group.num_layers for group in group_layers(stack)]
    [18, 18]
    """
    if not layers:
        return ()
    if not hybrid_manager:
        layers = _as_full(layers)
    if len({(layer.kind, layer.block_size, layer.reach_tokens) for layer in layers}) == 1:
        return (KvGroup(tuple(layers), tuple(range(len(layers)))),)
    same: dict[KvLayer, list[int]] = {}
    for position, layer in enumerate(_with_equal_pages(layers)):
        same.setdefault(layer, []).append(position)
    size = group_size([len(positions) for positions in same.values()])
    groups = []
    for layer, positions in same.items():
        num_groups = -(-len(positions) // size)
        # Dealt like cards, so that every pipeline stage gets its share of every group.
        for first in range(num_groups):
            dealt = tuple(positions[first::num_groups])
            groups.append(KvGroup((layer,) * len(dealt), dealt))
    return tuple(groups)


def _as_full(layers: Sequence[KvLayer]) -> list[KvLayer]:
    if not any(layer.kind == "full" for layer in layers):
        return list(layers)
    return [
        replace(layer, kind="full", reach_tokens=None)
        if layer.kind in ("sliding", "chunked")
        else layer
        for layer in layers
    ]


def _with_equal_pages(layers: Sequence[KvLayer]) -> list[KvLayer]:
    """Smaller pages grow to the largest: by more tokens where these divide, else by padding.

    Older versions refuse pages that do not divide; a state has no tokens to add.
    """
    largest = max(layer.page_bytes for layer in layers)
    grown = []
    for layer in layers:
        ratio, rest = divmod(largest, layer.page_bytes)
        more = layer.block_size if rest or layer.kind == "state" else layer.block_size * ratio
        grown.append(replace(layer, page_bytes=largest, block_size=more))
    return grown


def bytes_per_block(groups: Sequence[KvGroup], stage: range | None = None) -> int:
    """Bytes of one block on a GPU that holds the layers of ``stage`` (None: all of them).

    One group: the pages of its layers. Several: the page times the layers of the largest.
    """
    held = [
        [
            layer.page_bytes
            for layer, position in zip(group.layers, group.positions, strict=True)
            if stage is None or position in stage
        ]
        for group in groups
    ]
    return max((sum(pages) for pages in held), default=0)


def attention_block_size(
    state_bytes: int,
    attention_bytes_per_token: int,
    block_size: int = KERNEL_BLOCK_TOKENS,
    kernel_tokens: int = KERNEL_BLOCK_TOKENS,
) -> int:
    """Tokens a block of attention layers beside state-space layers (vLLM's `interface.py`).

    The page of one attention layer must hold the state of one linear layer, which is then
    padded up to it. ``attention_bytes_per_token`` is of one layer on one GPU.

    >>> attention_block_size(2_146_304, 2_048), attention_block_size(2_146_304, 1_024)
    (1056, 2096)
    """
    step = max(kernel_tokens, block_size)
    return step * -(-state_bytes // (step * attention_bytes_per_token))


def pipeline_stages(num_layers: int, pp: int) -> tuple[range, ...]:
    """Layers of each pipeline stage, as vLLM deals them (`distributed/utils.py`).

    What is left over goes to the last stages but one, backwards: the last has the head to hold,
    the first the embedding.

    >>> [len(stage) for stage in pipeline_stages(61, 4)], [len(s) for s in pipeline_stages(7, 2)]
    ([15, 15, 16, 15], [4, 3])
    """
    even, left = divmod(num_layers, pp)
    sizes = [even + (1 if pp - 1 - left <= stage < pp - 1 else 0) for stage in range(pp)]
    starts = [sum(sizes[:stage]) for stage in range(pp)]
    return tuple(range(s, s + size) for s, size in zip(starts, sizes, strict=True))
