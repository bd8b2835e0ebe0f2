"""What a model takes and what fits: weights, KV, blocks, static against paged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from capplan.errors import CapplanError
from capplan.formulas import paging
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.performance.kv_pool import KvPool
from capplan.performance.kv_sizing import kv_sizing
from capplan.performance.rates import compute_format
from capplan.planner.kv_split import check_split, possible_tps
from capplan.planner.kv_views import split_rows, stage_rows
from capplan.results.kv import BlockSizeRow, KvFit, KvLayerKind, KvResult
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_bytes_per_token, kv_layers
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import (
    num_params_active,
    num_params_total,
    tensors_of,
    weight_bytes,
)

BLOCK_SIZES = (8, 16, 32, 64, 128, 256)
BLOCK_TABLE_ENTRY_BYTES = 4  # int32 block numbers
_MOST_TPS = 8


@dataclass(frozen=True)
class KvQuestion:
    model_id: str
    model: ModelSpec
    hardware_id: str
    hardware: HardwareSpec
    engine: KvEngine
    context_tokens: int
    lengths: tuple[int, ...]
    static_length: int | None

    @cached_property
    def deployment(self) -> Deployment:
        return Deployment(self.model, self.hardware, self.engine, self.engine.tp or 1)


def kv_answer(question: KvQuestion) -> KvResult:
    """Everything that `capplan kv` shows, but for advice and a log's figures.

    Raises CapplanError for a context beyond the model's, degrees that do not divide, a format
    that the accelerator lacks, or a static length below the longest request.
    """
    _check(question)
    model, engine = question.model, question.engine
    here = question.deployment
    pool, tp, context = here.pool, here.tp, question.context_tokens
    one_gpu = replace(pool.settings, pp=1, dcp=1)
    whole = KvPool(model, engine.kv_dtype, 1, one_gpu, 0.0)
    total = sum(question.lengths)
    mean_tokens = min(-(-total // len(question.lengths)), model.max_context_tokens)
    static_length = question.static_length or max(question.lengths)
    static = paging.static_slots(question.lengths, static_length)
    embedding = sum(t.num_params for t in tensors_of(model) if t.group == "embedding")
    budget = here.budget
    fit = _fit(question, here)
    return KvResult(
        model=model.name,
        hardware=question.hardware_id,
        dtype=fit.dtype,
        kv_dtype=engine.kv_dtype,
        tp=tp,
        pp=engine.pp,
        dcp=engine.dcp,
        dp_attention=engine.dp,
        num_gpus=here.num_gpus,
        num_params_total=num_params_total(model),
        num_params_active=num_params_active(model),
        num_params_embedding=embedding,
        weight_bytes=weight_bytes(model, engine.weights.format),
        weight_bytes_per_gpu=fit.weight_bytes_per_gpu,
        kv_bytes_per_token=kv_bytes_per_token(model, engine.kv_dtype),
        kv_bytes_per_token_per_gpu=_token_bytes(here),
        context_tokens=context,
        kv_bytes_per_sequence=whole.decode_bytes(context),
        kv_bytes_per_sequence_per_gpu=pool.decode_bytes(context),
        visible_memory_bytes=here.visible_bytes,
        budget_bytes_per_gpu=budget.visible_bytes - budget.size("left free"),
        reserve_bytes_per_gpu=round(budget.overhead_bytes),
        kv_pool_bytes_per_gpu=budget.pool_bytes,
        num_sequences=fit.num_sequences,
        num_sequences_low=engine.dp * here.least_pool.num_sequences(context),
        num_sequences_high=engine.dp * here.most_pool.num_sequences(context),
        pool_tokens=fit.pool_tokens,
        longest_context_tokens=fit.longest_context_tokens,
        mean_length_tokens=mean_tokens,
        num_sequences_at_mean_length=here.num_sequences(mean_tokens),
        num_sequences_at_max_model_len=here.num_sequences(pool.max_model_len),
        block_size=pool.block_size,
        memory=budget,
        stages=tuple(stage_rows(here)) if engine.pp > 1 else (),
        split=tuple(split_rows(here)),
        sizing=replace(
            kv_sizing(pool, context),
            starts=here.starts,
            estimated_max_model_len=here.longest(pool.max_model_len),
        ),
        layers=tuple(_layer_kinds(question, tp)),
        fits=tuple(_fits(question)),
        num_lengths=len(question.lengths),
        lengths_total_tokens=total,
        static_length=static_length,
        static_slots=static,
        static_utilisation=paging.utilisation(total, static),
        num_static_requests=_held(here, static_length),
        blocks=tuple(
            _block_row(question, here, size) for size in sorted({*BLOCK_SIZES, pool.block_size})
        ),
        advice=(),
        log=None,
    )


def _token_bytes(here: Deployment) -> float:
    """What a token takes on the GPU that decides; windows, not yet full, like all others."""
    pool, groups = here.pool, here.pool.layout.groups
    if len(groups) == 1 and groups[0].layer.kind == "full":
        return pool.bytes_per_block / (pool.block_size * here.engine.dcp)
    return kv_bytes_per_token(here.model, here.engine.kv_dtype, here.tp)


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
    check_split(model, question.hardware, question.engine)
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


def _fit(question: KvQuestion, here: Deployment) -> KvFit:
    engine = here.engine
    num = here.num_sequences(question.context_tokens)
    longest = here.longest(here.model.max_context_tokens)
    return KvFit(
        dtype=engine.weights.format or here.model.stored_format,
        kv_dtype=engine.kv_dtype,
        tp=here.tp,
        weight_bytes_per_gpu=round(here.budget.size("weights")),
        kv_pool_bytes_per_gpu=here.budget.pool_bytes,
        fits=longest > 0,
        longest_context_tokens=longest,
        pool_tokens=num * question.context_tokens,
        num_sequences=num,
    )


def _fits(question: KvQuestion) -> Iterator[KvFit]:
    """The formats that the accelerator computes, by TP degree."""
    engine = question.engine
    engines = [engine]
    for smaller in smaller_formats(question):
        engines.append(replace(engine, dtype=smaller, edition=None))
    for one in engines:
        for kv_dtype in dict.fromkeys((engine.kv_dtype, "fp8")):
            tried = replace(one, kv_dtype=kv_dtype)
            tps = (
                [engine.tp] if engine.tp else possible_tps(question.model, question.hardware, tried)
            )
            for tp in tps:
                if tp <= _MOST_TPS or engine.tp:
                    yield _fit(question, Deployment(question.model, question.hardware, tried, tp))


def smaller_formats(question: KvQuestion) -> list[str]:
    """Weight formats below the one asked for that the accelerator computes."""
    stored = question.engine.weights.format or question.model.stored_format
    if stored not in ("bf16", "fp16", "fp32"):
        return []
    return ["fp8", "int4"] if "fp8" in question.hardware.compute.peak else ["int4"]


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


def _held(here: Deployment, slots: float) -> int | None:
    """Requests of so many token slots in the pool; None where KV is not one size a token."""
    if any(layer.window or layer.state_bytes for layer in kv_layers(here.model, "bf16")):
        return None
    size = _token_bytes(here)
    room = max(0.0, here.pool.available_bytes)
    return int(room // (slots * size)) * here.engine.dp if size else None


def _block_row(question: KvQuestion, here: Deployment, block_size: int) -> BlockSizeRow:
    lengths, total = question.lengths, sum(question.lengths)
    slots = paging.paged_slots(lengths, block_size)
    blocks = paging.blocks_needed(question.context_tokens, block_size)
    # Keys and values lie apart, so one run is half of a block's bytes; MLA has a single latent.
    runs = [
        layer.bytes_per_token / (1 if question.model.mixers[layer.mixer].kind == "mla" else 2)
        for layer in kv_layers(question.model, question.engine.kv_dtype, here.tp)
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
        num_requests=_held(here, slots / len(lengths)),
    )
