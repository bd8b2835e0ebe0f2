"""Every weight tensor of a model, by shape: parameters, bytes, work and shards all follow.

One inventory answers "how many parameters", "how many bytes", "how much work a token is" and
"what does one rank hold", so these can never disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from capplan.formulas.number_formats import FORMATS
from capplan.specs.ffn_tensors import ffn_tensors
from capplan.specs.mixer_tensors import mixer_tensors
from capplan.specs.model import QUANTIZED_GROUPS, ModelSpec, Quantization
from capplan.specs.tensor import Tensor


@lru_cache(maxsize=64)
def tensors_of(model: ModelSpec) -> tuple[Tensor, ...]:
    """The inventory, in the order of the forward pass."""
    return tuple(_inventory(model))


def num_params_total(model: ModelSpec) -> int:
    """Parameters that serving loads: everything but multi-token-prediction layers."""
    return sum(tensor.num_params for tensor in tensors_of(model))


def num_params_active(model: ModelSpec) -> int:
    """Parameters that one decoded token passes.

    Attention, dense FFN, router, shared and top-k experts, norms, LM head; not the input
    embedding, of which one row is read (unless it is also the head).
    """
    return sum(tensor.num_active_params for tensor in tensors_of(model))


def tensor_format(tensor: Tensor, model: ModelSpec, dtype: str | None = None) -> str:
    """The number format of a tensor as stored, or when the weights are converted to ``dtype``.

    A quantised dtype reaches the matrices of attention and FFN only, as engines do it:
    embedding, head, norms and router stay as they are.
    """
    stored = model.weights.quantization
    if dtype is not None and dtype != model.stored_format:
        if FORMATS[dtype].bits >= 16:
            return dtype
        quantised = tensor.group in ("attention", "dense_ffn", "shared_experts", "experts")
        return dtype if quantised and tensor.is_matrix else model.weights.dtype
    if stored is not None and tensor.is_matrix:
        return _stored_format(tensor, stored) or model.weights.dtype
    return model.weights.dtype


def _stored_format(tensor: Tensor, stored: Quantization) -> str | None:
    """The quantised format of a matrix by the most specific name, or None."""
    if tensor.group not in QUANTIZED_GROUPS:
        return None
    if stored.others:
        for name in (f"{tensor.part}.{tensor.name}", tensor.part, tensor.group):
            if name in stored.others:
                return stored.others[name]
    return stored.format if tensor.group in stored.groups else None


def tensor_bytes(tensor: Tensor, number_format: str) -> int:
    """Bytes of all copies of a tensor, scales included."""
    rows = tensor.shape[0] if tensor.is_matrix else 1
    columns = tensor.shape[-1]
    return tensor.copies * FORMATS[number_format].weight_bytes(rows, columns)


def weight_bytes(model: ModelSpec, dtype: str | None = None) -> int:
    """Bytes of all weights, as stored or converted to ``dtype``."""
    return sum(
        tensor_bytes(tensor, tensor_format(tensor, model, dtype)) for tensor in tensors_of(model)
    )


def weight_bytes_per_gpu(model: ModelSpec, tp: int, dtype: str | None = None) -> int:
    """Bytes of weights on each of ``tp`` ranks."""
    total = sum(
        tensor_bytes(tensor, tensor_format(tensor, model, dtype)) * tensor.shard_fraction(tp)
        for tensor in tensors_of(model)
    )
    return round(total)


def _inventory(model: ModelSpec) -> Iterator[Tensor]:
    hidden = model.hidden_size
    head_name = "embedding (also LM head)" if model.tied_embeddings else "embedding"
    table = (model.vocab_size, hidden)
    yield Tensor(head_name, "embedding", table, 1, int(model.tied_embeddings))
    if model.learned_positions:
        yield Tensor("positions", "embedding", (model.learned_positions, hidden), 1, 0)
    for name, count in model.mixer_counts.items():
        yield from mixer_tensors(name, model.mixers[name], hidden, count)
    for name, count in model.ffn_counts.items():
        yield from ffn_tensors(name, model.ffns[name], hidden, count)
    yield from _norms(model)
    yield from _residual_streams(model)
    if not model.tied_embeddings:
        yield Tensor("lm_head", "lm_head", table, 1, 1)
    if model.head_bias:
        yield Tensor("lm_head.bias", "lm_head", (model.vocab_size,), 1, 1)
    for name, count in model.extra_parameters.items():
        yield Tensor(name, "extra", (count,), 1, 0, "replicated")


def _residual_streams(model: ModelSpec) -> Iterator[Tensor]:
    """Weights that take n streams apart and join them, around each half and before the head."""
    n = model.residual_streams
    if n == 1:
        return
    halves = sum(model.mixer_counts.values()) + sum(model.ffn_counts.values())
    # Into the half, out of it, and among the streams; a bias each, and three scales.
    for name, outputs, num_scales, num in (("mix", (2 + n) * n, 3, halves), ("join", n, 1, 1)):
        shape = (outputs, n * model.hidden_size)
        yield Tensor(f"{name}_proj", "residual_streams", shape, num, num, "replicated")
        small = (outputs + num_scales,)
        yield Tensor(f"{name}.bias, scale", "residual_streams", small, num, num, "replicated")


def _norms(model: ModelSpec) -> Iterator[Tensor]:
    if model.layer_scalar:
        num = model.num_layers
        yield Tensor("layer scalars", "norm", (1,), num, num, "replicated")
    width = {"rms": 1, "layer": 2, "layer-without-bias": 1, "none": 0}[model.norm]
    if not width:
        return
    halves = sum(model.mixer_counts.values()) + sum(model.ffn_counts.values())
    copies = {"pre": halves, "sandwich": 2 * halves, "parallel": model.num_layers}
    shape = (width * model.hidden_size,)
    num = copies[model.norm_placement]
    yield Tensor("layer norms", "norm", shape, num, num, "replicated")
    if model.final_norm:
        yield Tensor("final norm", "norm", shape, 1, 1, "replicated")
    if model.embedding_norm:
        yield Tensor("embedding norm", "norm", shape, 1, 1, "replicated")
