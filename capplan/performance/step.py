"""How long one engine step takes on one replica, with its parts.

The batch comes as sums: the number of decodes, the context that they read (summed for each
attention window), and the prefill chunks. The simulator and the closed-form bounds call the
same two functions, `decode` and `mixed`.

The time is separable: a part by (tokens, rows, kinds of work), `fixed`; decode attention, linear
in (decodes, reads); prefill attention, linear in its sums (`attention`). docs/model.md numbers
the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from capplan.formulas.attention import context_reads
from capplan.formulas.collectives import all_reduce_time_s
from capplan.formulas.kv import tokens_held
from capplan.formulas.number_formats import FORMATS
from capplan.formulas.smooth import smooth_max
from capplan.performance.attention_time import AttentionCosts, attention_costs
from capplan.performance.batch import Batch, Chunk, StepTime, WindowSums
from capplan.performance.elementwise import Elementwise, elementwise_of
from capplan.performance.kernel_rates import KernelRates
from capplan.performance.overheads import NO_ENGINE, EngineOverheads
from capplan.performance.products import ExpertLayers, Product, expert_layers_of, products_of
from capplan.performance.rates import Rates, compute_format
from capplan.performance.work import StepWork, WorkModel
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_layers
from capplan.specs.model import ModelSpec

_DP_PREFILL_IMBALANCE = 1.3  # prompt tokens of the fullest attention copy over the mean
_LAUNCH_NORM = 4.0  # launches against kernels: whichever takes longer, with some jitter


class StepModel:
    """A model on ``tp`` x ``pp`` x ``dp`` accelerators at given rates, under one engine.

    ``dp`` copies of the attention share the batch evenly; the experts, spread over ``ep`` ranks,
    see all of it. ``pp`` stages have ``pp`` parts of the batch in flight: a step is the
    time in which every running sequence gets a token.

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
        pp: int = 1,
        dp: int = 1,
        ep: int = 1,
        engine: EngineOverheads = NO_ENGINE,
    ) -> None:
        self.model = model
        self.hardware = hardware
        self.rates = rates
        self.tp = tp
        self.pp = pp
        self.dp = dp
        self.ep = ep
        self.dtype = dtype
        self.kv_dtype = kv_dtype
        self.engine = engine
        self.weight_format = dtype or model.stored_format
        self._work = WorkModel(model, hardware, tp, dtype, kv_dtype)
        self.activation_dtype = self._work.activation_dtype
        self.attention_format = self._work.attention_format
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
        """The step's time in parts; at ideal rates the longer of compute and traffic."""
        kernels = self.rates.kernels
        if kernels is None:
            return self._ideal_time(batch)
        has_prefill = min(1.0, batch.num_prefills)
        attention_s = self.attention.decode_s(batch.num_decodes, batch.decode_reads, has_prefill)
        if batch.num_prefills:
            attention_s += self.attention.prefill_s(
                batch.prefill_tokens,
                batch.num_prefills,
                batch.prefill_reads or {},
                batch.prefill_kv_tokens or {},
            )
        fixed = self.fixed(
            batch.tokens,
            batch.sampled_rows,
            has_decodes=min(1.0, batch.num_decodes),
            has_prefill=has_prefill,
        )
        return fixed + StepTime(attention_s=attention_s)

    def fixed(
        self, tokens: float, rows: float, *, has_decodes: float, has_prefill: float
    ) -> StepTime:
        """What does not depend on context: products, experts, collectives, host, fixed times.

        ``rows`` are the sequences of the step, each of which samples a token; ``has_`` are 0 or
        1, or for a mean step the share of steps that have such work.
        """
        return self.by_tokens(tokens, has_decodes=has_decodes, has_prefill=has_prefill) + (
            self.by_rows(rows)
        )

    def by_tokens(self, tokens: float, *, has_decodes: float, has_prefill: float) -> StepTime:
        """The part of `fixed` that follows from the tokens: the layers."""
        part = tokens / self.pp
        rank = part / self.dp
        if self.dp > 1:
            # Ranks step together, and prompts do not fall evenly on them.
            rank = rank * (1 + (_DP_PREFILL_IMBALANCE - 1) * has_prefill)
        gemm_s = sum(p.time_s(rank) for p in self._layer_products)
        experts_s = sum(e.time_s(part) for e in self._experts)
        attention = self.attention
        attention_s = (
            has_decodes * attention.decode_fixed_s + has_prefill * attention.prefill_fixed_s
        )
        elementwise_s = self._elementwise.layers_s(rank)
        collective_s = self._collective_s(rank)
        gpu_s = gemm_s + experts_s + attention_s + elementwise_s + collective_s
        return StepTime(
            gemm_s=gemm_s,
            experts_s=experts_s,
            attention_s=attention_s,
            elementwise_s=elementwise_s,
            collective_s=collective_s,
            host_s=self._launch_s(tokens / self.dp, has_prefill, gpu_s),
        )

    def by_rows(self, rows: float) -> StepTime:
        """The part of `fixed` that follows from the sequences: head, sampling, host."""
        own = rows / self.dp
        part = own / self.pp
        engine = self.engine
        return StepTime(
            gemm_s=sum(p.time_s(part) for p in self._head_products),
            elementwise_s=self._elementwise.sampling_s(part),
            host_s=(rows > 0) * engine.step_s + own * engine.sequence_s,
        )

    def work(self, batch: Batch) -> StepWork:
        """Work and traffic on one GPU."""
        return self._work.work(batch)

    @cached_property
    def windows(self) -> tuple[int | None, ...]:
        """The attention windows that sums are needed for: what is attended to, what is held."""
        layers = kv_layers(self.model, self.kv_dtype, self.tp)
        return tuple(dict.fromkeys(w for layer in layers for w in (layer.attends, layer.window)))

    @cached_property
    def attention(self) -> AttentionCosts:
        """Coefficients of attention for the sums of the whole batch."""
        rates = self._kernels.attention(self.attention_format)
        tile_rows = self.engine.mixed_tile_rows.get(self._kernels.architecture.name, 0)
        return attention_costs(self._work, rates, self.pp * self.dp, tile_rows)

    @cached_property
    def _kernels(self) -> KernelRates:
        assert self.rates.kernels is not None, "ideal rates have no kernels"
        return self.rates.kernels

    @property
    def work_model(self) -> WorkModel:
        """Work and traffic of the tensors and caches on one rank."""
        return self._work

    @property
    def products(self) -> tuple[Product, ...]:
        """Dense matrix products, at rates that were measured."""
        return self._products

    @property
    def expert_layers(self) -> tuple[ExpertLayers, ...]:
        return self._experts

    @cached_property
    def _products(self) -> tuple[Product, ...]:
        return products_of(self._work, self._kernels)

    @cached_property
    def _layer_products(self) -> tuple[Product, ...]:
        return tuple(p for p in self._products if not p.samples_only)

    @cached_property
    def _head_products(self) -> tuple[Product, ...]:
        return tuple(p for p in self._products if p.samples_only)

    @cached_property
    def _experts(self) -> tuple[ExpertLayers, ...]:
        backends = self.engine.expert_backends
        return expert_layers_of(self._work, self._kernels, backends, self.ep, self.tp * self.dp)

    @cached_property
    def _elementwise(self) -> Elementwise:
        return elementwise_of(self._work, self._kernels.elementwise())

    def _ideal_time(self, batch: Batch) -> StepTime:
        peaks, bandwidth = self.rates.flops_per_s, self.rates.bandwidth_bytes_per_s
        gemm_s = 0.0
        for gemm in self._work.gemms:
            flop, weights, activations = gemm.work(batch)
            gemm_s += max(flop / peaks[gemm.compute], (weights + activations) / bandwidth)
        peak = peaks[self.attention_format]
        parts = self._work.attention_parts(batch)
        attention_s = sum(max(flop / peak, kv_bytes / bandwidth) for flop, kv_bytes in parts)
        return StepTime(gemm_s=gemm_s, attention_s=attention_s)

    def _launch_s(self, tokens: float, has_prefill: float, gpu_s: float) -> float:
        """Launches that the GPU waits for: layer by layer in steps that no CUDA graph covers.

        Those are steps with prefill, and decodes of as many sequences as no graph was captured for.
        """
        engine, layers = self.engine, self.model.num_layers
        launch_s = engine.launch_s_per_layer * layers * self._kernels.architecture.serving.launch
        eager_s = (
            launch_s if engine.eager_s_per_layer is None else engine.eager_s_per_layer * layers
        )
        eager = (1.0 - has_prefill) * (1.0 - engine.has_graph(tokens))
        return has_prefill * (smooth_max(gpu_s, launch_s, _LAUNCH_NORM) - gpu_s) + eager * (
            smooth_max(gpu_s, eager_s, _LAUNCH_NORM) - gpu_s
        )

    @cached_property
    def _dispatched_bits(self) -> float:
        """Of an element that goes to the experts' ranks; what comes back has the activations'."""
        experts, wide = FORMATS[self.weight_format], FORMATS[self.activation_dtype].bits
        in_tiles = experts.block is not None and experts.block[0] > 1  # quantized where computed
        if not self.engine.quantizes_dispatch or experts.compute is None or in_tiles:
            return wide
        return min(wide, experts.weight_bytes(1, 1024) / 128)

    def _collective_s(self, tokens: float) -> float:
        """Two all-reduces a layer: after the mixer and after the FFN (Megatron-LM, 1909.08053).

        Under data-parallel attention the experts' all-reduce is a dispatch and a combine over all
        ranks, which move what an all-reduce of all ranks' tokens moves; the dispatch less, where
        the engine quantizes before it.
        """
        element = FORMATS[self.activation_dtype].bits / 8
        message = tokens * self.model.hidden_size * element
        halves: float = sum(self.model.mixer_counts.values()) + sum(self.model.ffn_counts.values())
        seconds = 0.0
        exchange = self.rates.exchange
        if self.dp > 1 and exchange is not None:
            num = sum(layers.count for layers in self._experts)
            halves -= num
            dispatched = self._dispatched_bits / FORMATS[self.activation_dtype].bits
            both = all_reduce_time_s(
                message * self.dp * (dispatched + 1) / 2,
                self.tp * self.dp,
                2 * exchange.latency_s,
                exchange.bus_bandwidth_bytes_per_s,
                exchange.half_bytes,
            )
            seconds += num * both
        if self.rates.all_reduce is not None:
            rate = self.rates.all_reduce
            seconds += halves * all_reduce_time_s(
                message, self.tp, rate.latency_s, rate.bus_bandwidth_bytes_per_s, rate.half_bytes
            )
        if self.pp > 1 and self.rates.hop is not None:
            hop = self.rates.hop
            seconds += self.pp * (hop.latency_s + message / hop.bus_bandwidth_bytes_per_s)
        return seconds
