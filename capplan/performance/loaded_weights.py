"""Weights of one GPU as an engine holds them after loading: what its log prints.

Engines merge tensors (q, k, v; gate, up; the experts of a layer), pad the vocabulary, keep tables
of the rotary embedding, and the allocator rounds. Each effect is below a per cent; together they
are the difference between "parameters x bytes" and the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from capplan.formulas.allocator import allocated_bytes, rotary_cache_bytes
from capplan.formulas.capacity import round_up
from capplan.formulas.kv_groups import pipeline_stages
from capplan.formulas.number_formats import FORMATS
from capplan.specs.editions import ALL_GROUPS, WeightEdition
from capplan.specs.mixers import Attention, MultiHeadLatentAttention
from capplan.specs.model import ModelSpec
from capplan.specs.tensor import Tensor
from capplan.specs.tensors import tensor_format, tensors_of

VOCABULARY_MULTIPLE = 64  # vLLM: DEFAULT_VOCAB_PADDING_SIZE
# Widths that MXFP4 kernels pad to: (intermediate, hidden). Marlin: gpt-oss-120b is logged at
# 65.97 GiB; Triton: 64.38 (20b: 13.47); the checkpoint is 60.77.
MXFP4_PADDING = {"marlin": (128, 256), "triton": (256, 1)}
# Tensors that engines put side by side in one, by the end of their names.
_MERGED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


@dataclass(frozen=True, slots=True)
class LoadedWeights:
    """Bytes on the fullest GPU; ``rotary_bytes`` are in the total."""

    total_bytes: int
    rotary_bytes: int


@dataclass(frozen=True, slots=True)
class _Split:
    tp: int
    pp: int
    dp: int

    def experts(self, num_experts: int) -> int:
        """Experts that the fullest rank holds, whole or in slices."""
        return -(-num_experts // (self.tp * self.dp)) if self.dp > 1 else num_experts


@lru_cache(maxsize=256)
def loaded_weights(
    model: ModelSpec,
    tp: int = 1,
    pp: int = 1,
    edition: WeightEdition | None = None,
    stage: int | None = None,
    dp: int = 1,
) -> LoadedWeights:
    """Weights of one GPU of ``tp`` x ``pp``; ``stage`` None is the stage that holds most.

    With ``dp`` copies of the attention (data-parallel attention, expert parallel), whole experts
    are dealt over all ``tp`` x ``dp`` ranks of a stage; everything else is split over ``tp`` only.
    """
    edition = edition or WeightEdition()
    stages = range(pp) if stage is None else (stage,)
    split = _Split(tp, pp, dp)
    return max(
        (_of_stage(model, split, s, edition) for s in stages), key=lambda part: part.total_bytes
    )


def stage_layers(num_layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage, as vLLM deals them out (distributed/utils.py).

    What does not divide goes to the stages before the last, from behind: the first and the last
    hold embedding and head.

    >>> stage_layers(61, 4), stage_layers(32, 4)
    ((15, 15, 16, 15), (8, 8, 8, 8))
    """
    return tuple(len(stage) for stage in pipeline_stages(num_layers, pp))


def stage_model(model: ModelSpec, pp: int, stage: int) -> ModelSpec:
    """The layers of one pipeline stage as a model of their own (with the ends of the whole)."""
    if pp == 1:
        return model
    stack = [(m, f) for num, m, f in model.layer_runs for _ in range(num)]
    part = [stack[layer] for layer in pipeline_stages(model.num_layers, pp)[stage]]
    data = model.model_dump()
    data["layers"] = [{"mixer": m, "ffn": f} for m, f in part]
    data["mixers"] = {k: v for k, v in data["mixers"].items() if k in {m for m, _ in part}}
    data["ffns"] = {k: v for k, v in data["ffns"].items() if k in {f for _, f in part}}
    quantization = data["weights"]["quantization"]
    if quantization:  # formats of parts that stand in other stages
        gone = {*model.mixers, *model.ffns} - {*data["mixers"], *data["ffns"]}
        others = quantization["others"]
        quantization["others"] = {k: v for k, v in others.items() if k.split(".")[0] not in gone}
    return ModelSpec.model_validate(data)


def _of_stage(model: ModelSpec, split: _Split, stage: int, edition: WeightEdition) -> LoadedWeights:
    part = stage_model(model, split.pp, stage)
    rounded = 0
    for merged in _held(part, split.pp, stage):
        size, copies = _one_copy(merged, part, split, edition)
        # A tower is many tensors under one name, none of them large: nothing is rounded.
        alone = merged[0].group != "extra"
        rounded += (allocated_bytes(size) if alone else size) * copies
    rotary = _rotary_bytes(part)
    return LoadedWeights(rounded + rotary, rotary)


def _held(part: ModelSpec, pp: int, stage: int) -> Iterator[list[Tensor]]:
    """The tensors of a stage, as lists of what is merged into one."""
    ends = {"embedding": 0, "lm_head": pp - 1, "extra": 0}
    mine = [t for t in tensors_of(part) if ends.get(t.group, stage) == stage]
    if part.tied_embeddings and pp > 1 and stage == pp - 1:
        mine += [t for t in tensors_of(part) if t.group == "embedding"]
    while mine:
        first = mine.pop(0)
        parts = next((m for m in _MERGED if first.name.endswith(m[0])), ())
        merged = [first]
        while mine and mine[0].name.endswith(parts[len(merged) :] or ("\0",)):
            merged.append(mine.pop(0))
        yield merged


def _one_copy(
    merged: list[Tensor], model: ModelSpec, split: _Split, edition: WeightEdition
) -> tuple[int, int]:
    """Bytes of one merged tensor on one rank, and how many of these a rank holds."""
    tensor = merged[0]
    experts = tensor.num_experts or 1
    number_format = _format(tensor, model, edition)
    tp = 1 if tensor.num_experts and split.dp > 1 else split.tp
    size = sum(_shard_bytes(t, number_format, model, tp, edition.kernel) for t in merged)
    held = split.experts(experts) if tensor.num_experts else 1
    return size * held, max(1, tensor.copies // experts)


def _format(tensor: Tensor, model: ModelSpec, edition: WeightEdition) -> str:
    if edition.format in (None, "fp32", "bf16", "fp16"):
        return tensor_format(tensor, model, edition.format)
    if tensor.group in edition.groups and tensor.group in ALL_GROUPS and tensor.is_matrix:
        return str(edition.format)
    return model.weights.dtype


def _shard_bytes(
    tensor: Tensor, number_format: str, model: ModelSpec, tp: int, kernel: str | None
) -> int:
    shape = tensor.shape
    if tensor.group in ("embedding", "lm_head") and tensor.is_matrix:
        shape = (round_up(shape[0], VOCABULARY_MULTIPLE), shape[1])
    # A tower ("extra") is replicated in the inventory; engines split its blocks over the ranks.
    share = tensor.shard_fraction(tp) if tensor.group != "extra" else 1 / tp
    one = replace(tensor, shape=shape, copies=1)
    rows, columns = (one.shape[0], one.shape[1]) if one.is_matrix else (1, one.shape[0])
    size = FORMATS[number_format].weight_bytes(rows, columns) * share
    if number_format == "mxfp4" and tensor.num_experts:
        width = columns if tensor.name.endswith("down_proj") else rows
        size *= _mxfp4_padding(width // tp, model.hidden_size, kernel) / (width // tp)
    return -(-int(size * 1000) // 1000)


def _mxfp4_padding(width: int, hidden: int, kernel: str | None) -> float:
    """``width`` as padded by the kernel, the padding of the hidden size folded in."""
    of_width, of_hidden = MXFP4_PADDING[kernel or "triton"]
    return round_up(width, of_width) * round_up(hidden, of_hidden) / hidden


def _rotary_bytes(model: ModelSpec) -> int:
    """One table for each distinct rotary embedding; MLA's is kept in 32 bits (YaRN of DeepSeek)."""
    tables = set()
    for mixer in model.mixers.values():
        if isinstance(mixer, MultiHeadLatentAttention):
            tables.add((mixer.qk_rope_head_dim, 4))
        elif isinstance(mixer, Attention):
            tables.add((mixer.head_dim, 2))
    if model.learned_positions:
        return 0
    return sum(rotary_cache_bytes(model.max_context_tokens, dim, size) for dim, size in tables)
