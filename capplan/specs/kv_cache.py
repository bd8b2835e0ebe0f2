"""What a model keeps for a token and for a sequence: KV, latents and recurrent states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from capplan.formulas import kv
from capplan.formulas.number_formats import FORMATS
from capplan.formulas.paging import blocks_needed
from capplan.specs.model import (
    Attention,
    GatedDeltaNet,
    Mamba2,
    ModelSpec,
    MultiHeadLatentAttention,
)

# FlashMLA's packed layout of an MLA latent, by the engine's name; of no other layer.
PACKED_MLA = "fp8_ds_mla"


@dataclass(frozen=True, slots=True)
class KvLayers:
    """``count`` layers of one kind on one GPU.

    ``bytes_per_token`` a layer grow with the context, up to ``window`` tokens;
    ``state_bytes`` a layer and sequence do not grow.
    """

    name: str
    count: int
    bytes_per_token: float
    window: int | None
    state_bytes: float


@lru_cache(maxsize=256)
def kv_layers(model: ModelSpec, kv_dtype: str, tp: int = 1) -> tuple[KvLayers, ...]:
    """The KV of each mixer kind on one of ``tp`` ranks.

    KV heads are replicated where there are fewer than ranks; the MLA latent is on every rank.
    """
    return tuple(_layers(model, kv_dtype, tp))


def has_windows(model: ModelSpec) -> bool:
    """Whether some layers keep the last tokens only."""
    layers = kv_layers(model, model.activation_dtype)
    return any(layer.window is not None for layer in layers)


def has_states(model: ModelSpec) -> bool:
    """Whether some layers keep a state in place of KV."""
    layers = kv_layers(model, model.activation_dtype)
    return any(layer.state_bytes > 0 for layer in layers)


def kv_bytes_per_token(model: ModelSpec, kv_dtype: str, tp: int = 1) -> float:
    """Bytes that writing one token takes on one rank, over all layers (windows not yet full)."""
    return sum(layer.count * layer.bytes_per_token for layer in kv_layers(model, kv_dtype, tp))


def kv_bytes_per_sequence(
    model: ModelSpec, context_tokens: int, kv_dtype: str, tp: int = 1, block_size: int = 1
) -> float:
    """Bytes that a sequence of ``context_tokens`` holds on one rank, in whole blocks."""
    total = 0.0
    for layer in kv_layers(model, kv_dtype, tp):
        held = kv.tokens_held(context_tokens, layer.window)
        slots = blocks_needed(held, block_size) * block_size
        total += layer.count * (slots * layer.bytes_per_token + layer.state_bytes)
    return total


def _layers(model: ModelSpec, kv_dtype: str, tp: int) -> Iterator[KvLayers]:
    packed = kv_dtype == PACKED_MLA
    element = 1.0 if packed else FORMATS[kv_dtype].bits / 8
    for name, count in model.mixer_counts.items():
        mixer = model.mixers[name]
        if isinstance(mixer, Attention):
            heads = kv.kv_heads_per_gpu(mixer.num_kv_heads, tp)
            size = kv.kv_bytes_per_token(heads, mixer.head_dim, mixer.value_dim, element)
            yield KvLayers(name, count, size, mixer.window, 0.0)
        elif isinstance(mixer, MultiHeadLatentAttention):
            latent, rope = mixer.kv_lora_rank, mixer.qk_rope_head_dim
            size = (
                kv.packed_mla_bytes_per_token(latent, rope)
                if packed
                else kv.mla_bytes_per_token(latent, rope, element)
            )
            yield KvLayers(name, count, size, None, 0.0)
        else:
            yield KvLayers(name, count, 0.0, None, _state_bytes(mixer, model) / tp)


def _state_bytes(mixer: GatedDeltaNet | Mamba2, model: ModelSpec) -> float:
    """Convolution window (in the activations' format) and recurrent state of one layer."""
    if isinstance(mixer, GatedDeltaNet):
        key = mixer.num_key_heads * mixer.key_head_dim
        conv = 2 * key + mixer.num_value_heads * mixer.value_head_dim
        state = mixer.num_value_heads * mixer.key_head_dim * mixer.value_head_dim
    else:
        conv = mixer.num_heads * mixer.head_dim + 2 * mixer.num_groups * mixer.state_size
        state = mixer.num_heads * mixer.head_dim * mixer.state_size
    conv_bytes = (mixer.conv_kernel - 1) * conv * FORMATS[model.activation_dtype].bits / 8
    return conv_bytes + state * FORMATS[mixer.state_dtype].bits / 8
