"""How long one engine step takes on one replica, with its parts.

The batch comes as sums: the number of decodes, the context that they read (summed for each
attention window), and the prefill chunks. The simulator and the closed-form bounds call the
same two functions, `decode` and `mixed`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from capplan.formulas.attention import (
    attention_flop,
    context_reads,
    indexer_flop,
    state_flop,
)
from capplan.formulas.collectives import all_reduce_time_s
from capplan.formulas.kv import tokens_held
from capplan.formulas.moe import distinct_experts
from capplan.formulas.number_formats import FORMATS
from capplan.performance.rates import Rates, compute_format
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

# Sums by attention window; None is full attention.
WindowSums = Mapping[int | None, float]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prefill tokens given to one request in one step, after ``context_tokens`` computed ones."""

    tokens: int
    context_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """One step as sums. Floats, so that a mean step (a fraction of a prompt) can be asked for."""

    num_decodes: float
    decode_reads: WindowSums  # positions read by all decodes
    prefill_tokens: float = 0.0
    num_prefills: float = 0.0  # prompts that end in this step and sample a token
    prefill_reads: WindowSums | None = None  # causal positions attended to
    prefill_kv_tokens: WindowSums | None = None  # KV entries loaded once for the chunks

    @property
    def tokens(self) -> float:
        return self.num_decodes + self.prefill_tokens

    @property
    def sampled_rows(self) -> float:
        return self.num_decodes + self.num_prefills


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
class StepTime:
    """Seconds of one step; the parts sum to the total."""

    gemm_s: float
    attention_s: float
    collective_s: float

    @property
    def total_s(self) -> float:
        return self.gemm_s + self.attention_s + self.collective_s


@dataclass(frozen=True, slots=True)
class _Gemm:
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


class StepModel:
    """A model on ``tp`` accelerators at given rates.

    Raises CapplanError when the accelerator cannot compute in the weights' format.
    """

    def __init__(
        self,
        model: ModelSpec,
        hardware: HardwareSpec,
        rates: Rates,
        *,
        tp: int = 1,
        dtype: str | None = None,
        kv_dtype: str,
    ) -> None:
        self.model = model
        self.hardware = hardware
        self.rates = rates
        self.tp = tp
        self.dtype = dtype
        self.kv_dtype = kv_dtype
        self.weight_format = dtype or model.stored_format
        self.activation_dtype = _activations(model, dtype)
        self.attention_format = compute_format(
            hardware, self.activation_dtype, self.activation_dtype
        )
        self.gemm_format = compute_format(hardware, self.weight_format, self.activation_dtype)

    def decode(self, num_decodes: float, decode_reads: WindowSums) -> StepTime:
        """A step of decodes only; ``decode_reads`` sums min(context, window) over them."""
        return self.time(Batch(num_decodes, decode_reads))

    def mixed(
        self, num_decodes: float, decode_reads: WindowSums, chunks: Sequence[Chunk]
    ) -> StepTime:
        """A step of decodes and prefill chunks; every chunk is taken to end its prompt."""
        return self.time(self.batch(num_decodes, decode_reads, chunks))

    def batch(self, num_decodes: float, decode_reads: WindowSums, chunks: Sequence[Chunk]) -> Batch:
        """The sums of a mixed step."""
        windows = self.windows
        return Batch(
            num_decodes,
            decode_reads,
            prefill_tokens=sum(chunk.tokens for chunk in chunks),
            num_prefills=len(chunks),
            prefill_reads={
                w: sum(context_reads(c.tokens, c.context_tokens, w) for c in chunks)
                for w in windows
            },
            prefill_kv_tokens={
                w: sum(c.tokens + tokens_held(c.context_tokens, w) for c in chunks) for w in windows
            },
        )

    def uniform_reads(self, num_decodes: float, context_tokens: int) -> WindowSums:
        """Sums for decodes that all have the same context."""
        return {w: num_decodes * tokens_held(context_tokens, w) for w in self.windows}

    def time(self, batch: Batch) -> StepTime:
        """Each product and each attention takes the longer of its compute and its traffic."""
        bandwidth = self.rates.bandwidth_bytes_per_s
        gemm_s = 0.0
        for gemm in self._gemms:
            flop, weights, activations = gemm.work(batch)
            compute_s = flop / self.rates.flops_per_s[gemm.compute]
            gemm_s += max(compute_s, (weights + activations) / bandwidth)
        peak = self.rates.flops_per_s[self.attention_format]
        attention_s = 0.0
        for flop, kv_bytes in self._attention_parts(batch):
            attention_s += max(flop / peak, kv_bytes / bandwidth)
        return StepTime(gemm_s, attention_s, self._collective_s(batch.tokens))

    def work(self, batch: Batch) -> StepWork:
        """Work and traffic on one GPU."""
        flops: dict[str, float] = defaultdict(float)
        weight_bytes = activation_bytes = kv_bytes = 0.0
        for gemm in self._gemms:
            flop, weights, activations = gemm.work(batch)
            flops[gemm.compute] += flop
            weight_bytes += weights
            activation_bytes += activations
        for flop, moved in self._attention_parts(batch):
            flops[self.attention_format] += flop
            kv_bytes += moved
        return StepWork(dict(flops), weight_bytes, kv_bytes, activation_bytes)

    @cached_property
    def windows(self) -> tuple[int | None, ...]:
        """The attention windows that sums are needed for: what is attended to, what is held."""
        layers = kv_layers(self.model, self.kv_dtype, self.tp)
        return tuple(dict.fromkeys(w for layer in layers for w in (layer.attends, layer.window)))

    @cached_property
    def _gemms(self) -> tuple[_Gemm, ...]:
        return tuple(self._gemm(t) for t in tensors_of(self.model) if t.active_copies)

    def _gemm(self, tensor: Tensor) -> _Gemm:
        number_format = tensor_format(tensor, self.model, self.dtype)
        share = tensor.shard_fraction(self.tp)
        rows, columns = tensor.shape if tensor.is_matrix else (0, 0)
        element = FORMATS[self.activation_dtype].bits / 8
        # Inputs are read and outputs written once. Megatron's split leaves one side whole: the
        # outputs where they are the hidden state (then the inputs are split), else the inputs.
        whole_outputs = rows == self.model.hidden_size
        sides = rows + columns * share if whole_outputs else rows * share + columns
        moved = sides * element * tensor.active_copies
        return _Gemm(
            flop_per_row=2.0 * rows * columns * tensor.active_copies * share,
            activation_bytes_per_row=moved,
            weight_bytes=tensor_bytes(tensor, number_format) * share,
            compute=compute_format(self.hardware, number_format, self.activation_dtype),
            samples_only=tensor.group in ("lm_head", "embedding"),
            num_experts=tensor.num_experts,
            experts_per_token=tensor.experts_per_token,
        )

    def _attention_parts(self, batch: Batch) -> list[tuple[float, float]]:
        """(FLOP, KV bytes) of decode and of prefill attention for each kind of layer."""
        parts: list[tuple[float, float]] = []
        for layer in kv_layers(self.model, self.kv_dtype, self.tp):
            write = layer.bytes_per_token
            if batch.num_decodes:
                reads = batch.decode_reads.get(layer.attends, 0.0)
                flop = self._mixer_flop(layer, reads, batch.num_decodes, absorbed=True)
                moved = (reads + batch.num_decodes) * write
                moved += 2 * layer.state_bytes * batch.num_decodes
                parts.append((layer.count * flop, layer.count * moved))
            if batch.prefill_tokens:
                reads = (batch.prefill_reads or {}).get(layer.attends, 0.0)
                loaded = (batch.prefill_kv_tokens or {}).get(layer.window, 0.0)
                flop = self._mixer_flop(layer, reads, batch.prefill_tokens, absorbed=False)
                moved = (loaded + batch.prefill_tokens) * write
                moved += 2 * layer.state_bytes * batch.num_prefills
                parts.append((layer.count * flop, layer.count * moved))
        return parts

    def _mixer_flop(self, layer: KvLayers, reads: float, tokens: float, *, absorbed: bool) -> float:
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

    def _collective_s(self, tokens: float) -> float:
        """Two all-reduces a layer: after the mixer and after the FFN (Megatron-LM, 1909.08053)."""
        rate = self.rates.all_reduce
        if rate is None:
            return 0.0
        halves = sum(self.model.mixer_counts.values()) + sum(self.model.ffn_counts.values())
        element = FORMATS[self.activation_dtype].bits / 8
        message = tokens * self.model.hidden_size * element
        return halves * all_reduce_time_s(
            message, self.tp, rate.latency_s, rate.bus_bandwidth_bytes_per_s
        )


def _activations(model: ModelSpec, dtype: str | None) -> str:
    """Activations are in the 16- or 32-bit format of the weights, or of what is not quantised."""
    if dtype is not None and FORMATS[dtype].bits >= 16:
        return dtype
    return model.activation_dtype
