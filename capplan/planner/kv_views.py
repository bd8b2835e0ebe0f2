"""The whole model beside one GPU of it, and the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.formulas import kv_blocks
from capplan.formulas.capacity import round_up
from capplan.formulas.kv import kv_heads_per_gpu
from capplan.performance.kv_engine import Deployment
from capplan.performance.loaded_weights import VOCABULARY_MULTIPLE, stage_layers
from capplan.results.kv import SplitRow, StageRow
from capplan.specs.ffns import MoEFFN
from capplan.specs.mixers import Attention, MultiHeadLatentAttention


def split_rows(here: Deployment) -> Iterator[SplitRow]:
    """What is dealt over the GPUs, and what is on each of them whole."""
    model, tp, engine = here.model, here.tp, here.engine
    if engine.pp > 1:
        layers = max(stage_layers(model.num_layers, engine.pp))
        yield SplitRow("layers", model.num_layers, layers, "fullest stage")
    for name, mixer in model.mixers.items():
        label = f" ({name})" if len(model.mixers) > 1 else ""
        if isinstance(mixer, Attention):
            held = kv_heads_per_gpu(mixer.num_kv_heads, tp)
            copies = held * tp // mixer.num_kv_heads
            note = f"each on {copies} GPUs" if copies > 1 else None
            yield SplitRow(f"KV heads{label}", mixer.num_kv_heads, held, note)
        elif isinstance(mixer, MultiHeadLatentAttention):
            note = "on every GPU" if tp > 1 else None
            yield SplitRow(f"latents{label}", 1, 1, note)
    for name, ffn in model.ffns.items():
        if isinstance(ffn, MoEFFN):
            label = (
                f" ({name})" if len([f for f in model.ffns.values() if f.kind == "moe"]) > 1 else ""
            )
            ranks = tp * engine.dp
            spread = engine.dp > 1
            held = -(-ffn.num_experts // ranks) if spread else ffn.num_experts
            note = f"spread over {ranks} GPUs" if spread else f"1/{tp} of each" if tp > 1 else None
            yield SplitRow(f"experts{label}", ffn.num_experts, held, note)
    rows = round_up(model.vocab_size, VOCABULARY_MULTIPLE)
    note = f"padded to {rows:,}" if rows != model.vocab_size else None
    yield SplitRow("vocabulary rows", model.vocab_size, -(-rows // tp), note)


def stage_rows(here: Deployment) -> Iterator[StageRow]:
    """Each stage of the pipeline; the one with the fewest blocks decides for all."""
    layers = stage_layers(here.model.num_layers, here.engine.pp)
    sizes = here.pool.layout.stage_bytes_per_block
    for budget, num_layers, size in zip(here.budgets, layers, sizes, strict=True):
        yield StageRow(
            stage=budget.stage,
            num_layers=num_layers,
            weight_bytes_per_gpu=budget.size("weights"),
            kv_pool_bytes_per_gpu=budget.pool_bytes,
            bytes_per_block_per_gpu=size,
            num_blocks=kv_blocks.num_blocks(budget.pool_bytes, size) if size else None,
            decides=budget is here.budget,
        )
