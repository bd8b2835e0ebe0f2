"""The memory budget of an engine on one GPU: what is left for KV, and how sure that is.

Rules (FINDINGS of the start-up logs, docs/memory.md):

- vLLM: pool = visible x gpu_memory_utilization - weights - non-torch - activation peak
  (- estimated CUDA graphs from 0.21 on);
- SGLang: pool = free after loading - free before x (1 - mem_fraction_static);
- TensorRT-LLM: pool = free after loading x free_gpu_memory_fraction.

Each is written as "visible memory less terms", so that terms and pool sum to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from capplan.performance.loaded_weights import loaded_weights
from capplan.results.memory import MemoryBudget, MemoryTerm
from capplan.specs.editions import WeightEdition
from capplan.specs.engine import Activations, BytesRange, EngineSpec
from capplan.specs.ffns import DenseFFN
from capplan.specs.model import ModelSpec

# CUDA shows a process 0.5 to 2 % less than the driver's total; half of that on either side.
_VISIBLE_SPREAD_FRACTION = 0.01
_MIN_PROFILED_TOKENS = 2048  # vLLM V0: max(max_model_len, 2048) without chunked prefill


@dataclass(frozen=True)
class MemoryRequest:
    """What decides the budget; None is the engine's default.

    ``free_before_bytes`` is what a log of SGLang prints before loading; it replaces the estimate
    of what the context takes.
    """

    model: ModelSpec
    engine: EngineSpec
    visible_bytes: float
    gpu_name: str = ""
    tp: int = 1
    pp: int = 1
    dp: int = 1  # copies of the attention over which experts are spread
    edition: WeightEdition | None = None
    memory_share: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    visible_is_estimate: bool = False
    fast_link: bool = True
    free_before_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """The request with the engine's defaults filled in."""

    share: float
    num_seqs: int
    num_tokens: int


def memory_budget(request: MemoryRequest) -> MemoryBudget:
    """The budget of the GPU that has least room: over all pipeline stages."""
    return min(stage_budgets(request), key=lambda budget: budget.pool_bytes)


def stage_budgets(request: MemoryRequest) -> tuple[MemoryBudget, ...]:
    """The budget of a GPU of each pipeline stage."""
    settings = _settings(request)
    return tuple(_of_stage(request, settings, stage) for stage in range(request.pp))


def _settings(request: MemoryRequest) -> _Settings:
    engine, given = request.engine, request
    defaults = engine.gpu_class(request.visible_bytes, request.gpu_name)
    length = request.max_model_len or request.model.max_context_tokens
    tokens = given.max_num_batched_tokens or defaults.max_num_batched_tokens
    if given.max_num_batched_tokens is None and not engine.defaults.chunks_prefill(length):
        tokens = max(length, _MIN_PROFILED_TOKENS)
    share = given.memory_share
    if share is None:
        gpus = request.tp * request.pp * request.dp
        share = engine.share_of(
            request.visible_bytes, request.gpu_name, gpus, request.dp, given.max_num_batched_tokens
        )
    seqs = min(given.max_num_seqs or defaults.max_num_seqs, tokens)
    return _Settings(share, seqs, tokens)


def _of_stage(request: MemoryRequest, settings: _Settings, stage: int) -> MemoryBudget:
    terms = tuple(_terms(request, settings, stage))
    pool = request.visible_bytes - sum(term.likely_bytes for term in terms)
    spread = request.visible_bytes * settings.share * _VISIBLE_SPREAD_FRACTION
    spread = spread if request.visible_is_estimate else 0.0
    down = math.hypot(spread, *(term.high_bytes - term.likely_bytes for term in terms))
    up = math.hypot(spread, *(term.likely_bytes - term.low_bytes for term in terms))
    return MemoryBudget(
        engine=request.engine.name,
        memory_share=settings.share,
        memory_share_option=request.engine.defaults.memory_share_option,
        visible_bytes=request.visible_bytes,
        max_num_seqs=settings.num_seqs,
        max_num_batched_tokens=settings.num_tokens,
        block_size=request.block_size or request.engine.defaults.block_size,
        stage=stage,
        terms=terms,
        pool_low_bytes=pool - down,
        pool_bytes=pool,
        pool_high_bytes=pool + up,
    )


def _terms(request: MemoryRequest, settings: _Settings, stage: int) -> Iterator[MemoryTerm]:
    engine, visible = request.engine, request.visible_bytes
    weights = loaded_weights(
        request.model, request.tp, request.pp, request.edition, stage, request.dp
    )
    total = float(weights.total_bytes)
    yield MemoryTerm("weights", total, total, total, 0, "tensors as loaded")
    non_torch = engine.non_torch(request.tp * request.dp, request.fast_link)
    yield _measured("non-torch", non_torch)
    if engine.budget_rule == "share-of-visible":
        yield _fixed("left free", visible * (1 - settings.share))
        if engine.memory.activations is not None:
            last = stage == request.pp - 1
            yield _activation_term(request, engine.memory.activations, settings, last)
        if engine.memory.cuda_graphs.subtracted:
            yield _measured("CUDA graphs (estimate)", engine.memory.cuda_graphs)
    elif engine.budget_rule == "static-share-of-free":
        yield from _static_share_terms(request, settings)
    else:
        free = visible - total - non_torch.likely
        yield _fixed("left free", free * (1 - settings.share))


def _static_share_terms(request: MemoryRequest, settings: _Settings) -> Iterator[MemoryTerm]:
    """SGLang: what the context takes, and the part of the free memory that is left alone."""
    context = request.engine.context(request.tp, request.fast_link)
    if request.free_before_bytes is not None:
        before = request.free_before_bytes
        yield _fixed("context", request.visible_bytes - before)
    else:
        before = request.visible_bytes - (context.likely if context else 0)
        if context:
            yield _measured("context", context)
    yield _fixed("left free", before * (1 - settings.share))


def _fixed(name: str, size: float) -> MemoryTerm:
    return MemoryTerm(name, size, size, size, 0, "the engine's rule")


def _measured(name: str, term: BytesRange) -> MemoryTerm:
    source = term.note or "start-up logs"
    return MemoryTerm(name, term.low, term.likely, term.high, term.rows, source)


def _activation_term(
    request: MemoryRequest, term: Activations, settings: _Settings, is_last_stage: bool
) -> MemoryTerm:
    """The profiled peak; see ``specs.engine.Activations`` for the form."""
    low, likely, high = (
        activation_peak_bytes(request, term, settings.num_seqs, settings.num_tokens, bound)
        if is_last_stage
        else activation_peak_bytes(request, term, 0, settings.num_tokens, bound)
        for bound in ("low", "likely", "high")
    )
    rows = min(term.constant.rows, term.logit_bytes.rows)
    return MemoryTerm("activation peak", low, likely, high, rows, "fit to start-up logs")


def activation_peak_bytes(
    request: MemoryRequest, term: Activations, num_seqs: int, num_tokens: int, bound: str
) -> float:
    """One end of the range: ``low``, ``likely`` or ``high``; no ``num_seqs`` is no sampling."""
    model = request.model
    encoder = bool(model.extra_parameters)
    rows = 1 if encoder and term.one_row_with_encoder and num_seqs else num_seqs
    wide = 2 if request.edition is not None and request.edition.format == "fp32" else 1
    per_logit = getattr(term.logit_bytes, bound) + 2 * (wide - 1)
    moments = [
        rows * model.vocab_size * per_logit,
        num_tokens * 2 * wide * _layer_elements(model, term, request.tp),
    ]
    if encoder:
        moments.append(getattr(term.encoder, bound))
    return float(getattr(term.constant, bound) + max(moments))


def _layer_elements(model: ModelSpec, term: Activations, tp: int) -> float:
    """Elements a token that the widest layer keeps: FFN intermediates and copies of the hidden.

    Llama-3.1-8B without chunked prefill is logged at 2.07 GiB for 20,000 tokens and 2.99 for
    29,000: 3 x 14,336 + 3 x 4,096 elements a token give 2.06 and 2.99.
    """
    widths = [0.0]
    for ffn in model.ffns.values():
        if isinstance(ffn, DenseFFN):
            widths.append(term.ffn_copies * ffn.intermediate_size / tp)
        else:
            routed = ffn.experts_per_token * (
                term.ffn_copies * ffn.intermediate_size / tp + model.hidden_size
            )
            widths.append(routed + term.ffn_copies * ffn.shared_intermediate_size / tp)
    return max(widths) + term.hidden_copies * model.hidden_size
