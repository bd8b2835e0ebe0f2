"""Whether a model can be dealt over GPUs: every number that has to divide, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.errors import CapplanError, UnsupportedError
from capplan.formulas.number_formats import FORMATS
from capplan.performance.kv_engine import KvEngine
from capplan.planner.parallelism import allowed_tps, check_tp, num_experts, tp_fault
from capplan.specs.editions import WeightEdition
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import has_windows
from capplan.specs.mixers import Attention
from capplan.specs.model import ModelSpec
from capplan.specs.tensor import Tensor
from capplan.specs.tensors import tensor_format, tensors_of

_STAGES = (1, 2, 4, 8)
# The second matrix of each pair is split along its inputs, the first along its outputs.
_SPLIT_INPUTS = ("o_proj", "out_proj", "down_proj")


def possible_tps(model: ModelSpec, hardware: HardwareSpec, engine: KvEngine) -> list[int]:
    """Powers of two that divide heads and quantisation groups, within the fast link's domain."""
    tps = allowed_tps(model, hardware)
    return [tp for tp in tps if split_fault(model, replace(engine, tp=tp), tp) is None]


def check_split(model: ModelSpec, hardware: HardwareSpec, engine: KvEngine) -> None:
    """Raise CapplanError for degrees that do not divide the model, with those that do."""
    tp = engine.tp or 1
    check_tp(model, hardware, tp)
    if engine.pp > model.num_layers:
        raise CapplanError(
            f"--pp {engine.pp} does not work: {model.num_layers} layers are fewer than the stages",
            hint=f"use --pp {model.num_layers} or less",
        )
    if engine.dp > 1 and not num_experts(model):
        raise UnsupportedError(
            f"--dp-attention {engine.dp} spreads experts, and {model.name} has none",
            hint="leave it out: each replica of a model without experts is a whole copy",
        )
    if fault := split_fault(model, engine, tp):
        works = ", ".join(str(able) for able in possible_tps(model, hardware, engine))
        option = (
            f"--dcp {engine.dcp} at --tp {tp}" if _dcp_fault(model, engine, tp) else f"--tp {tp}"
        )
        hint = f"use one of: {works} (--tp)" if works else "leave out --dcp"
        raise UnsupportedError(f"{option} does not work: {fault}", hint=hint)


def split_fault(model: ModelSpec, engine: KvEngine, tp: int) -> str | None:
    """What does not divide at this degree, or None."""
    return (
        tp_fault(model, tp)
        or _expert_fault(model, engine, tp)
        or group_fault(model, tp, engine.weights, whole_experts=engine.dp > 1)
        or _dcp_fault(model, engine, tp)
    )


def _expert_fault(model: ModelSpec, engine: KvEngine, tp: int) -> str | None:
    experts, ranks = num_experts(model), tp * engine.dp
    if engine.dp > 1 and ranks > experts:
        return f"{experts} experts are fewer than the {ranks} ranks"
    return None


def group_fault(
    model: ModelSpec, tp: int, edition: WeightEdition, *, whole_experts: bool = False
) -> str | None:
    """Elements that share a scale must stay on one rank; MXFP4 kernels pad instead."""
    for tensor in tensors_of(model):
        if not tensor.is_matrix or tensor.shard == "replicated" or tp == 1:
            continue
        if tensor.num_experts and whole_experts:
            continue
        number_format = _format(tensor, model, edition)
        block = FORMATS[number_format].block
        if block is None or number_format == "mxfp4":
            continue
        inputs = tensor.name.endswith(_SPLIT_INPUTS)
        size, tile = (tensor.shape[1], block[1]) if inputs else (tensor.shape[0], block[0])
        share = round(size * tensor.shard_fraction(tp))
        # Where the whole does not divide either, it is stored otherwise or padded.
        if share % tile and not size % tile:
            what = "inputs" if inputs else "outputs"
            return (
                f"{size:,} {what} of {tensor.name} leave {share:,} a GPU, which {number_format} "
                f"groups of {tile} do not divide"
            )
    return None


def _format(tensor: Tensor, model: ModelSpec, edition: WeightEdition) -> str:
    if edition.format is not None and tensor.group not in edition.groups:
        return model.weights.dtype
    return tensor_format(tensor, model, edition.format)


def _dcp_fault(model: ModelSpec, engine: KvEngine, tp: int) -> str | None:
    """vLLM: the copies of each KV head share the tokens, so there must be as many copies."""
    dcp = engine.dcp
    if dcp == 1:
        return None
    if has_windows(model):
        return "sliding windows cannot be shared over ranks"
    for heads in _kv_heads(model):
        copies = tp // heads
        if copies < dcp or copies % dcp:
            kept = "its latent" if heads == 1 else f"each of its {heads} KV heads"
            times = f"{max(copies, 1)} time{'s' if copies > 1 else ''}"
            return f"{model.name} keeps {kept} {times} over {tp} GPUs"
    return None


def _kv_heads(model: ModelSpec) -> Iterator[int]:
    for mixer in model.mixers.values():
        if isinstance(mixer, Attention):
            yield mixer.num_kv_heads
        elif mixer.kind in ("mla", "compressed"):
            yield 1


def more_gpus(
    model: ModelSpec, hardware: HardwareSpec, engine: KvEngine
) -> Iterator[tuple[int, int]]:
    """Degrees (TP, PP) with more GPUs than now, fewest first; TP before stages."""
    here = (engine.tp or 1) * engine.pp
    tps = possible_tps(model, hardware, engine)
    degrees = {(tp, engine.pp) for tp in tps} | {(tp, pp) for tp in tps for pp in _STAGES}
    found = [(tp, pp) for tp, pp in degrees if tp * pp > here and pp <= model.num_layers]
    yield from sorted(found, key=lambda pair: (pair[0] * pair[1], pair[1]))
