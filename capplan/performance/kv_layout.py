"""A model's layers as groups of KV blocks, whatever the size of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from capplan.formulas.kv_blocks import Flight
from capplan.formulas.kv_groups import (
    KERNEL_BLOCK_TOKENS,
    Kind,
    KvGroup,
    KvLayer,
    attention_block_size,
    bytes_per_block,
    group_layers,
    padding_layers,
    pipeline_stages,
)
from capplan.specs.kv_cache import KvLayers, kv_layers
from capplan.specs.model import ModelSpec

# MLA kernels read blocks of 64 tokens (FlashMLA); a linear-attention hybrid's grow by these.
_MLA_KERNEL_BLOCK_TOKENS = 64


@dataclass(frozen=True, slots=True)
class KvSettings:
    """Engine settings that shape the pool, by the engine's names; defaults of vLLM 0.33.

    ``max_model_len`` None is the model's own context. ``printed_by_groups`` is how versions
    before about 0.21 printed the size of the cache. Speculation adds state blocks; the drafter's
    own layers and the wider convolution window are not counted.
    """

    block_size: int = 16
    max_model_len: int | None = None
    max_num_batched_tokens: int = 8192
    enable_prefix_caching: bool = True
    async_scheduling: bool = True
    hybrid_manager: bool = True
    hybrid_chunked: bool = True  # also for models with chunked-local layers
    pp: int = 1
    dcp: int = 1
    num_speculative_tokens: int = 0
    printed_by_groups: bool = False

    @property
    def flight(self) -> Flight:
        return Flight(
            self.max_num_batched_tokens,
            self.async_scheduling,
            self.enable_prefix_caching,
            self.dcp,
            self.num_speculative_tokens,
        )


@dataclass(frozen=True, slots=True)
class KvLayout:
    """A model's layers as groups of blocks, whatever the size of the pool."""

    groups: tuple[KvGroup, ...]
    stage_bytes_per_block: tuple[int, ...]  # of each pipeline stage
    num_padding_layers: int


@lru_cache(maxsize=256)
def kv_layout(model: ModelSpec, kv_dtype: str, tp: int, settings: KvSettings) -> KvLayout:
    """The groups of a model, and the bytes of a block on a GPU of each pipeline stage."""
    held, entries = _stack(model, kv_dtype, tp, settings)
    chunked = any(layer.kind == "chunked" for layer in held)
    hybrid = settings.hybrid_manager and (settings.hybrid_chunked or not chunked)
    groups = group_layers(held, hybrid_manager=hybrid)
    stages = []
    for stage in pipeline_stages(model.num_layers, settings.pp):
        # Layers without KV (an FFN alone) count for the stages, not for the groups.
        first, last = (sum(entries[:end]) for end in (stage.start, stage.stop))
        stages.append(bytes_per_block(groups, range(first, last)))
    return KvLayout(groups, tuple(stages), _num_padding_layers(groups))


def _num_padding_layers(groups: Sequence[KvGroup]) -> int:
    if len(groups) < 2:
        return 0
    kinds: dict[KvLayer, int] = {}
    for group in groups:
        kinds[group.layer] = kinds.get(group.layer, 0) + group.num_layers
    size = max(group.num_layers for group in groups)
    return sum(padding_layers(num_layers, size) for num_layers in kinds.values())


def _stack(
    model: ModelSpec, kv_dtype: str, tp: int, settings: KvSettings
) -> tuple[list[KvLayer], list[int]]:
    """What the layers keep, in stacking order, and how many such entries each layer has."""
    kept: dict[str, list[KvLayer]] = {name: [] for name in model.mixers}
    kinds = kv_layers(model, kv_dtype, tp)
    block_size = _block_size(model, kinds, settings)
    for kind in kinds:
        kept[kind.mixer].append(_layer(kind, block_size))
    held: list[KvLayer] = []
    entries: list[int] = []
    for num, mixer, _ in model.layer_runs:
        layers = kept[mixer] if mixer is not None else []
        held.extend(layers * num)
        entries.extend([len(layers)] * num)
    page = max((layer.page_bytes for layer in held if layer.kind != "state"), default=0)
    padded = [
        replace(layer, page_bytes=max(page, layer.page_bytes)) if layer.kind == "state" else layer
        for layer in held
    ]
    return padded, entries


def _layer(layers: KvLayers, block_size: int) -> KvLayer:
    if layers.bytes_per_token:
        local: Kind = "chunked" if layers.is_chunked else "sliding"
        kind: Kind = "full" if layers.window is None else local
        page = round(layers.bytes_per_token * block_size)
        return KvLayer(kind, page, block_size, layers.window)
    return KvLayer("state", round(layers.state_bytes), block_size)


def _block_size(model: ModelSpec, kinds: Sequence[KvLayers], settings: KvSettings) -> int:
    """Tokens a block: as set, but large enough to hold a state where layers have one."""
    states = [layers.state_bytes for layers in kinds if not layers.bytes_per_token]
    growing = [layers for layers in kinds if layers.bytes_per_token]
    if not states or not growing:
        return settings.block_size
    widest = max(growing, key=lambda layers: layers.bytes_per_token)
    is_mla = model.mixers[widest.mixer].kind == "mla"
    return attention_block_size(
        round(max(states)),
        round(widest.bytes_per_token),
        settings.block_size,
        _MLA_KERNEL_BLOCK_TOKENS if is_mla else KERNEL_BLOCK_TOKENS,
    )
