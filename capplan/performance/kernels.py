"""A step kernel by kernel: the work of each, and the time that the calibrated model gives it."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.formulas.moe import distinct_experts
from capplan.performance.batch import Batch
from capplan.performance.products import ExpertLayers, Product
from capplan.performance.step import StepModel


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kind of work on one GPU, all layers together, at the rates of the model.

    ``compute`` is the format of its arithmetic; None for what is no arithmetic that a roofline
    counts: norms and sampling, collectives, launches. Their FLOP and bytes are 0.
    """

    name: str
    compute: str | None
    flop: float
    hbm_bytes: float
    time_s: float


def kernels_of(steps: StepModel, batch: Batch) -> list[Kernel]:
    """In the order of the model's tensors; the times add up to the step's."""
    found: dict[tuple[str, str], Kernel] = {}
    for product in steps.products:
        _add(found, _of_product(product, batch))
    for experts in steps.expert_layers:
        _add(found, _of_experts(experts, batch))
    whole = steps.time(batch)
    parts = steps.work_model.attention_parts(batch)
    attention = Kernel(
        "attention",
        steps.attention_format,
        sum(flop for flop, _ in parts),
        sum(moved for _, moved in parts),
        whole.attention_s,
    )
    rest = (
        ("norms, sampling", whole.elementwise_s),
        ("collectives", whole.collective_s),
        ("host", whole.host_s),
    )
    others = [Kernel(name, None, 0.0, 0.0, time_s) for name, time_s in rest if time_s > 0]
    return [*found.values(), attention, *others]


def _add(found: dict[tuple[str, str], Kernel], kernel: Kernel) -> None:
    """Products of the same name and format are one row."""
    key = kernel.name, str(kernel.compute)
    known = found.get(key)
    if known is not None:
        kernel = Kernel(
            kernel.name,
            kernel.compute,
            known.flop + kernel.flop,
            known.hbm_bytes + kernel.hbm_bytes,
            known.time_s + kernel.time_s,
        )
    found[key] = kernel


def _of_product(product: Product, batch: Batch) -> Kernel:
    rows = batch.sampled_rows if product.samples_only else batch.tokens
    moved = product.weight_bytes * (rows > 0) + rows * product.activation_bytes_per_row
    return Kernel(
        product.name,
        product.compute,
        product.count * rows * product.flop_per_row,
        product.count * moved,
        product.time_s(rows),
    )


def _of_experts(experts: ExpertLayers, batch: Batch) -> Kernel:
    tokens = batch.tokens
    touched = distinct_experts(experts.num_experts, experts.experts_per_token, tokens) / experts.ep
    rows = tokens * experts.experts_per_token / experts.ep
    moved = touched * experts.weight_bytes_per_expert
    moved += rows * experts.activation_bytes_per_routed_row
    return Kernel(
        "experts",
        experts.compute,
        experts.count * rows * experts.flop_per_routed_row,
        experts.count * moved,
        experts.time_s(tokens),
    )
