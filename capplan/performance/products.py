"""The matrix products of a step as the engine launches them: merged tensors, by real shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from capplan.formulas.moe import fullest_rank
from capplan.formulas.number_formats import FORMATS
from capplan.performance.kernel_rates import KernelRate, KernelRates, curve_name
from capplan.performance.rates import compute_format
from capplan.performance.work import WorkModel
from capplan.specs.tensor import Tensor
from capplan.specs.tensors import tensor_bytes, tensor_format, tensors_of

# Tensors that read the same input are one product: engines put them side by side.
_MERGED = {
    name: at
    for at, names in enumerate(
        (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("q_a_proj", "kv_a_proj"))
    )
    for name in names
}
_ROW_PARALLEL = ("o_proj", "down_proj", "out_proj", "o_b_proj")


@dataclass(frozen=True, slots=True)
class Product:
    """``count`` equal products of a step on one GPU; per product and row."""

    name: str  # `qkv_proj`: as engines call what they merge
    compute: str  # the format of its arithmetic
    count: float
    flop_per_row: float
    activation_bytes_per_row: float
    weight_bytes: float
    rate: KernelRate
    samples_only: bool  # the head: only rows that sample a token

    def time_s(self, rows: float) -> float:
        """All of them; none without rows."""
        moved = self.weight_bytes + rows * self.activation_bytes_per_row
        return self.count * (rows > 0) * self.rate.time_s(rows * self.flop_per_row, moved)


@dataclass(frozen=True, slots=True)
class ExpertLayers:
    """``count`` layers of routed experts as the fullest rank of ``ep`` computes them."""

    compute: str
    count: float
    num_experts: int
    experts_per_token: int
    flop_per_routed_row: float  # of one expert's slice
    activation_bytes_per_routed_row: float
    weight_bytes_per_expert: float  # of the slice
    ep: int
    rate: KernelRate

    def time_s(self, tokens: float) -> float:
        """``tokens`` of all data-parallel ranks together."""
        touched, rows = fullest_rank(self.num_experts, self.experts_per_token, tokens, self.ep)
        computed = rows + self.rate.tile_rows * touched
        moved = touched * self.weight_bytes_per_expert + rows * self.activation_bytes_per_routed_row
        return (
            self.count * (tokens > 0) * self.rate.time_s(computed * self.flop_per_routed_row, moved)
        )


def products_of(work: WorkModel, kernels: KernelRates) -> tuple[Product, ...]:
    """Every product but those of routed experts."""
    found = [t for t in tensors_of(work.model) if t.is_matrix and t.active_copies]
    dense = [t for t in found if not t.num_experts]
    merged = groupby(enumerate(dense), lambda item: _merge_key(item[0], item[1]))
    return tuple(_product([t for _, t in group], work, kernels) for _, group in merged)


def _merge_key(at: int, tensor: Tensor) -> tuple[object, ...]:
    name = tensor.name.rpartition(".")[2]
    which = _MERGED.get(name, None if "indexer" not in tensor.name else at)
    return (tensor.part, tensor.group, tensor.shape[1], at if which is None else f"m{which}")


def _name(parts: Sequence[str]) -> str:
    """
    >>> _name(["q_proj", "k_proj", "v_proj"]), _name(["o_proj"])
    ('qkv_proj', 'o_proj')
    """
    if len(parts) == 1:
        return parts[0]
    heads = [part.removesuffix("_proj") for part in parts]
    joined = "" if all(len(head) == 1 for head in heads) else "_"
    return joined.join(dict.fromkeys(heads)) + "_proj"


def _product(tensors: Sequence[Tensor], work: WorkModel, kernels: KernelRates) -> Product:
    number_format = tensor_format(tensors[0], work.model, work.dtype)
    compute = compute_format(work.hardware, number_format, work.activation_dtype)
    count = tensors[0].active_copies
    element = FORMATS[work.activation_dtype].bits / 8
    columns = tensors[0].shape[1]
    outputs = sum(t.shape[0] * t.shard_fraction(work.tp) for t in tensors)
    inputs: float = columns
    if tensors[0].name.endswith(_ROW_PARALLEL):
        # Megatron's second half (arXiv:1909.08053): inputs are split, outputs are partial sums.
        outputs, inputs = tensors[0].shape[0], columns * tensors[0].shard_fraction(work.tp)
    weights = sum(
        tensor_bytes(t, number_format) / max(1, t.copies) * t.shard_fraction(work.tp)
        for t in tensors
    )
    return Product(
        name=_name([t.name.rpartition(".")[2] for t in tensors]),
        compute=compute,
        count=count,
        flop_per_row=2.0 * outputs * inputs,
        activation_bytes_per_row=(outputs + inputs) * element,
        weight_bytes=weights,
        rate=kernels.product(number_format, compute),
        samples_only=tensors[0].group in ("lm_head", "embedding"),
    )


def expert_layers_of(
    work: WorkModel,
    kernels: KernelRates,
    backends: Mapping[str, tuple[str, ...]],
    ep: int,
    ranks: int,
) -> tuple[ExpertLayers, ...]:
    """Routed experts over ``ranks`` GPUs: whole experts over ``ep``, their widths over the rest."""
    experts = [t for t in tensors_of(work.model) if t.is_matrix and t.num_experts]
    parts = groupby(experts, lambda tensor: tensor.part)
    return tuple(_expert_layers(list(g), work, kernels, backends, ep, ranks) for _, g in parts)


def expert_families(backends: Mapping[str, tuple[str, ...]], number_format: str) -> tuple[str, ...]:
    """Kernel families that an engine prefers: of the format, of those computed alike, or usual.

    >>> table = {"default": ("triton",), "weight-only": ("marlin",), "mxfp4": ("trtllm-gen",)}
    >>> [expert_families(table, name) for name in ("mxfp4", "int4-group32", "bf16")]
    [('trtllm-gen',), ('marlin',), ('triton',)]
    """
    names = (number_format.split("-")[0], curve_name(number_format), "default")
    return next((backends[name] for name in names if name in backends), ())


def _expert_layers(
    tensors: Sequence[Tensor],
    work: WorkModel,
    kernels: KernelRates,
    backends: Mapping[str, tuple[str, ...]],
    ep: int,
    ranks: int,
) -> ExpertLayers:
    first = tensors[0]
    number_format = tensor_format(first, work.model, work.dtype)
    compute = compute_format(work.hardware, number_format, work.activation_dtype)
    slices = ranks / ep
    element = FORMATS[work.activation_dtype].bits / 8
    params = sum(t.shape[0] * t.shape[1] for t in tensors)
    # Read the hidden state, write and read the width, write the output.
    width = min(min(t.shape) for t in tensors)
    outer = max(max(t.shape) for t in tensors)
    weights = sum(tensor_bytes(t, number_format) / t.copies for t in tensors)
    families = expert_families(backends, number_format)
    return ExpertLayers(
        compute=compute,
        count=first.copies / first.num_experts,
        num_experts=first.num_experts,
        experts_per_token=first.experts_per_token,
        flop_per_routed_row=2.0 * params / slices,
        activation_bytes_per_routed_row=(2 * outer + 3 * width / slices) * element,
        weight_bytes_per_expert=weights / slices,
        ep=ep,
        rate=kernels.experts(families, number_format, compute),
    )
