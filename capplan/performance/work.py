"""Work and traffic of a step on one GPU, counted from the model's tensors; no rates in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from capplan.formulas.attention import attention_flop, indexer_flop, state_flop
from capplan.formulas.moe import distinct_experts
from capplan.formulas.number_formats import FORMATS
from capplan.performance.batch import Batch
from capplan.performance.rates import compute_format
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import KvLayers, kv_layers
from capplan.specs.mixers import (
    Attention,
    CompressedAttention,
    GatedDeltaNet,
    Mamba2,
    MultiHeadLatentAttention,
)
from capplan.specs.model import ModelSpec
from capplan.specs.tensor import Tensor
from capplan.specs.tensors import tensor_bytes, tensor_format, tensors_of


@dataclass(frozen=True, slots=True)
class StepWork:
    """Work and traffic of a step on one GPU."""

    flop_by_format: Mapping[str, float]
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float

    @property
    def flop(self) -> float:
        return sum(self.flop_by_format.values())

    @property
    def hbm_bytes(self) -> float:
        return self.weight_bytes + self.kv_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Gemm:
    """One kind of matrix product on one GPU, all layers together."""

    flop_per_row: float
    activation_bytes_per_row: float
    weight_bytes: float
    compute: str
    samples_only: bool  # LM head: only rows that sample a token
    num_experts: int
    experts_per_token: int

    def work(self, batch: Batch) -> tuple[float, float, float]:
        """FLOP, weight bytes and activation bytes."""
        rows = batch.sampled_rows if self.samples_only else batch.tokens
        read = 1.0 if rows else 0.0
        if self.num_experts:
            touched = distinct_experts(self.num_experts, self.experts_per_token, rows)
            read = touched / self.num_experts
        return (
            self.flop_per_row * rows,
            self.weight_bytes * read,
            self.activation_bytes_per_row * rows,
        )


class WorkModel:
    """A model's tensors and caches on one of ``tp`` ranks."""

    def __init__(
        self, model: ModelSpec, hardware: HardwareSpec, tp: int, dtype: str | None, kv_dtype: str
    ) -> None:
        self.model = model
        self.hardware = hardware
        self.tp = tp
        self.dtype = dtype
        self.kv_dtype = kv_dtype
        self.activation_dtype = _activations(model, dtype)
        self.attention_format = compute_format(
            hardware, self.activation_dtype, self.activation_dtype
        )

    def work(self, batch: Batch) -> StepWork:
        """Work and traffic on one GPU."""
        flops: dict[str, float] = defaultdict(float)
        weight_bytes = activation_bytes = kv_bytes = 0.0
        for gemm in self.gemms:
            flop, weights, activations = gemm.work(batch)
            flops[gemm.compute] += flop
            weight_bytes += weights
            activation_bytes += activations
        for flop, moved in self.attention_parts(batch):
            flops[self.attention_format] += flop
            kv_bytes += moved
        return StepWork(dict(flops), weight_bytes, kv_bytes, activation_bytes)

    @cached_property
    def gemms(self) -> tuple[Gemm, ...]:
        return tuple(self._gemm(t) for t in tensors_of(self.model) if t.active_copies)

    def _gemm(self, tensor: Tensor) -> Gemm:
        number_format = tensor_format(tensor, self.model, self.dtype)
        share = tensor.shard_fraction(self.tp)
        rows, columns = tensor.shape if tensor.is_matrix else (0, 0)
        element = FORMATS[self.activation_dtype].bits / 8
        # Inputs are read and outputs written once. Megatron's split leaves one side whole: the
        # outputs where they are the hidden state (then the inputs are split), else the inputs.
        whole_outputs = rows == self.model.hidden_size
        sides = rows + columns * share if whole_outputs else rows * share + columns
        moved = sides * element * tensor.active_copies
        return Gemm(
            flop_per_row=2.0 * rows * columns * tensor.active_copies * share,
            activation_bytes_per_row=moved,
            weight_bytes=tensor_bytes(tensor, number_format) * share,
            compute=compute_format(self.hardware, number_format, self.activation_dtype),
            samples_only=tensor.group in ("lm_head", "embedding"),
            num_experts=tensor.num_experts,
            experts_per_token=tensor.experts_per_token,
        )

    def attention_parts(self, batch: Batch) -> list[tuple[float, float]]:
        """(FLOP, KV bytes) of decode and of prefill attention for each kind of layer."""
        parts: list[tuple[float, float]] = []
        for layer in kv_layers(self.model, self.kv_dtype, self.tp):
            write = layer.bytes_per_token
            if batch.num_decodes:
                reads = batch.decode_reads.get(layer.attends, 0.0)
                flop = self.mixer_flop(layer, reads, batch.num_decodes, absorbed=True)
                moved = (reads + batch.num_decodes) * write
                moved += 2 * layer.state_bytes * batch.num_decodes
                parts.append((layer.count * flop, layer.count * moved))
            if batch.prefill_tokens:
                reads = (batch.prefill_reads or {}).get(layer.attends, 0.0)
                loaded = (batch.prefill_kv_tokens or {}).get(layer.window, 0.0)
                flop = self.mixer_flop(layer, reads, batch.prefill_tokens, absorbed=False)
                moved = (loaded + batch.prefill_tokens) * write
                moved += 2 * layer.state_bytes * batch.num_prefills
                parts.append((layer.count * flop, layer.count * moved))
        return parts

    def mixer_flop(self, layer: KvLayers, reads: float, tokens: float, *, absorbed: bool) -> float:
        """FLOP of one layer's attention (or state update) on one GPU, projections aside."""
        mixer = self.model.mixers[layer.mixer]
        reads /= layer.tokens_per_entry
        indexer = getattr(mixer, "indexer", None)
        if layer.is_indexer and indexer is not None:
            # Its heads are on every rank, as its keys are.
            return indexer_flop(indexer.num_heads, indexer.head_dim, reads)
        if isinstance(mixer, Attention):
            return attention_flop(mixer.num_heads, mixer.head_dim, mixer.value_dim, reads) / self.tp
        if isinstance(mixer, CompressedAttention):
            return attention_flop(mixer.num_heads, mixer.head_dim, mixer.head_dim, reads) / self.tp
        if isinstance(mixer, MultiHeadLatentAttention):
            # Decode works on the latent itself ("absorbed" projections); prefill expands it.
            latent, rope = mixer.kv_lora_rank, mixer.qk_rope_head_dim
            qk = latent + rope if absorbed else mixer.qk_nope_head_dim + rope
            value = latent if absorbed else mixer.v_head_dim
            return attention_flop(mixer.num_heads, qk, value, reads) / self.tp
        if isinstance(mixer, GatedDeltaNet):
            heads, key, value = mixer.num_value_heads, mixer.key_head_dim, mixer.value_head_dim
        elif isinstance(mixer, Mamba2):
            heads, key, value = mixer.num_heads, mixer.state_size, mixer.head_dim
        else:
            heads, key, value = mixer.inner_size, mixer.state_size, 1
        return state_flop(heads, key, value) * tokens / self.tp


def _activations(model: ModelSpec, dtype: str | None) -> str:
    """Activations are in the 16- or 32-bit format of the weights, or of what is not quantised."""
    if dtype is not None and FORMATS[dtype].bits >= 16:
        return dtype
    return model.activation_dtype
