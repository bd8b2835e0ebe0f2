"""What a model takes and what fits: weights, KV, blocks, static against paged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capplan.errors import CapplanError
from capplan.formulas import paging
from capplan.performance.kv_sizing import KvPool, kv_sizing
from capplan.performance.rates import compute_format
from capplan.planner.parallelism import allowed_tps, check_tp
from capplan.planner.question import EngineSettings
from capplan.results.kv import BlockSizeRow, KvFit, KvLayerKind, KvResult
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_bytes_per_token, kv_layers
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import (
    num_params_active,
    num_params_total,
    tensors_of,
    weight_bytes,
    weight_bytes_per_gpu,
)

BLOCK_SIZES = (16, 32, 64, 128)
BLOCK_TABLE_ENTRY_BYTES = 4  # int32 block numbers
_MOST_TPS = 8


@dataclass(frozen=True)
class KvQuestion:
    model_id: str
    model: ModelSpec
    hardware_id: str
    hardware: HardwareSpec
    engine: EngineSettings
    context_tokens: int
    lengths: tuple[int, ...]
    static_length: int | None


def kv_answer(question: KvQuestion) -> KvResult:
    """Everything that `capplan kv` shows.

    Raises CapplanError for a context beyond the model's, a TP that does not divide, a format
    that the accelerator lacks, or a static length below the longest request.
    """
    _check(question)
    model, engine = question.model, question.engine
    tp = engine.tp or 1
    here, pool = _fit(question, engine.dtype, engine.kv_dtype, tp)
    whole = engine.kv_pool(model, 0.0)
    total = sum(question.lengths)
    static_length = question.static_length or max(question.lengths)
    static = paging.static_slots(question.lengths, static_length)
    embedding = sum(t.num_params for t in tensors_of(model) if t.group == "embedding")
    return KvResult(
        model=model.name,
        hardware=question.hardware_id,
        dtype=here.dtype,
        kv_dtype=engine.kv_dtype,
        tp=tp,
        num_params_total=num_params_total(model),
        num_params_active=num_params_active(model),
        num_params_embedding=embedding,
        weight_bytes=weight_bytes(model, engine.dtype),
        weight_bytes_per_gpu=here.weight_bytes_per_gpu,
        kv_bytes_per_token=kv_bytes_per_token(model, engine.kv_dtype),
        kv_bytes_per_token_per_gpu=kv_bytes_per_token(model, engine.kv_dtype, tp),
        context_tokens=question.context_tokens,
        kv_bytes_per_sequence=whole.decode_bytes(question.context_tokens),
        kv_bytes_per_sequence_per_gpu=pool.decode_bytes(question.context_tokens),
        visible_memory_bytes=engine.gpu_memory_bytes or question.hardware.visible_memory_bytes,
        budget_bytes_per_gpu=engine.budget_bytes_per_gpu(question.hardware),
        reserve_bytes_per_gpu=engine.reserve_bytes,
        kv_pool_bytes_per_gpu=here.kv_pool_bytes_per_gpu,
        num_sequences=here.num_sequences,
        pool_tokens=here.pool_tokens,
        block_size=pool.block_size,
        sizing=kv_sizing(pool, question.context_tokens),
        layers=tuple(_layer_kinds(question, tp)),
        fits=tuple(_fits(question)),
        num_lengths=len(question.lengths),
        lengths_total_tokens=total,
        static_length=static_length,
        static_slots=static,
        static_utilisation=paging.utilisation(total, static),
        blocks=tuple(
            _block_row(question, size, tp) for size in sorted({*BLOCK_SIZES, pool.block_size})
        ),
    )


def _check(question: KvQuestion) -> None:
    model = question.model
    if question.context_tokens > model.max_context_tokens:
        raise CapplanError(
            f"--context {question.context_tokens:,} exceeds the {model.max_context_tokens:,} "
            f"tokens of context of {model.name}",
            hint=f"use --context {model.max_context_tokens} or less",
        )
    max_model_len = question.engine.max_model_len
    if max_model_len is not None:
        _check_max_model_len(question, max_model_len)
    if question.engine.tp:
        check_tp(model, question.hardware, question.engine.tp)
    if question.engine.dtype is not None:
        # What is stored has its size on any accelerator; a conversion must be computable.
        compute_format(question.hardware, question.engine.dtype, model.activation_dtype)
    longest = max(question.lengths)
    if question.static_length is not None and question.static_length < longest:
        raise CapplanError(
            f"--static-length {question.static_length:,} is below the longest request, "
            f"{longest:,} tokens",
            hint=f"static pre-allocation needs at least {longest}",
        )


def _check_max_model_len(question: KvQuestion, max_model_len: int) -> None:
    model = question.model
    if max_model_len > model.max_context_tokens:
        raise CapplanError(
            f"--max-model-len {max_model_len:,} exceeds the {model.max_context_tokens:,} tokens "
            f"of context of {model.name}",
            hint=f"use --max-model-len {model.max_context_tokens} or less",
        )
    if max_model_len < question.context_tokens:
        raise CapplanError(
            f"--max-model-len {max_model_len:,} is below --context {question.context_tokens:,}",
            hint="the engine refuses requests longer than its maximum length",
        )


def _fit(question: KvQuestion, dtype: str | None, kv_dtype: str, tp: int) -> tuple[KvFit, KvPool]:
    model, engine = question.model, question.engine
    weights = weight_bytes_per_gpu(model, tp, dtype)
    room = engine.budget_bytes_per_gpu(question.hardware) - weights - engine.reserve_bytes
    pool = engine.kv_pool(model, room, tp=tp, kv_dtype=kv_dtype)
    longest = pool.longest(model.max_context_tokens)
    num = pool.num_sequences(question.context_tokens)
    fit = KvFit(
        dtype=dtype or model.stored_format,
        kv_dtype=kv_dtype,
        tp=tp,
        weight_bytes_per_gpu=weights,
        kv_pool_bytes_per_gpu=room,
        fits=longest > 0,
        longest_context_tokens=longest,
        pool_tokens=num * question.context_tokens,
        num_sequences=num,
    )
    return fit, pool


def _fits(question: KvQuestion) -> Iterator[KvFit]:
    """The formats that the accelerator computes, by TP degree."""
    model, engine = question.model, question.engine
    stored = engine.dtype or model.stored_format
    dtypes: list[str | None] = [engine.dtype]
    kv_dtypes = list(dict.fromkeys((engine.kv_dtype, "fp8")))
    for smaller in ("fp8", "int4"):
        peaks = question.hardware.compute.peak
        native = smaller == "int4" or smaller in peaks
        if native and stored in ("bf16", "fp16", "fp32"):
            dtypes.append(smaller)
    tps = [engine.tp] if engine.tp else allowed_tps(model, question.hardware)
    for dtype in dtypes:
        for kv_dtype in kv_dtypes:
            for tp in tps:
                if tp <= _MOST_TPS or engine.tp:
                    yield _fit(question, dtype, kv_dtype, tp)[0]


def _layer_kinds(question: KvQuestion, tp: int) -> Iterator[KvLayerKind]:
    model = question.model
    for layer in kv_layers(model, question.engine.kv_dtype, tp):
        yield KvLayerKind(
            name=layer.name,
            kind="indexer" if layer.is_indexer else model.mixers[layer.mixer].kind,
            num_layers=layer.count,
            bytes_per_token=layer.count * layer.bytes_per_token,
            window=layer.window,
            state_bytes_per_sequence=layer.count * layer.state_bytes,
        )


def _block_row(question: KvQuestion, block_size: int, tp: int) -> BlockSizeRow:
    lengths, total = question.lengths, sum(question.lengths)
    slots = paging.paged_slots(lengths, block_size)
    blocks = paging.blocks_needed(question.context_tokens, block_size)
    # Keys and values lie apart, so one run is half of a block's bytes; MLA has a single latent.
    runs = [
        layer.bytes_per_token / (1 if question.model.mixers[layer.mixer].kind == "mla" else 2)
        for layer in kv_layers(question.model, question.engine.kv_dtype, tp)
    ]
    run = max(runs, default=0.0) * block_size
    return BlockSizeRow(
        block_size=block_size,
        mean_waste_tokens=(slots - total) / len(lengths),
        waste_fraction=1 - total / slots,
        block_table_bytes=blocks * BLOCK_TABLE_ENTRY_BYTES,
        contiguous_bytes=run,
        used_tokens=total,
        paged_slots=slots,
        paged_utilisation=paging.utilisation(total, slots),
    )
