"""The points of a roofline kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.formulas.roofline import intensity_flop_per_byte
from capplan.performance.batch import Batch
from capplan.performance.kernels import Kernel, kernels_of
from capplan.performance.rates import Rates
from capplan.performance.step import StepModel
from capplan.results.roofline import RooflineKernel


def kernels_at(
    ideal: Rates, derated: StepModel, batch: Batch, phase: str, num: int, context: int
) -> Iterator[RooflineKernel]:
    """Shortest times at ``ideal`` rates with perfect overlap, derated ones by the model."""
    found = kernels_of(derated, batch)
    whole_s = sum(kernel.time_s for kernel in found)
    for kernel in found:
        yield _row(kernel, ideal, phase, num, context, whole_s)


def _row(
    kernel: Kernel, ideal: Rates, phase: str, num: int, context: int, whole_s: float
) -> RooflineKernel:
    intensity = bound = reach = shortest_s = None
    if kernel.compute is not None and kernel.hbm_bytes:
        compute_s = kernel.flop / ideal.flops_per_s[kernel.compute]
        memory_s = kernel.hbm_bytes / ideal.bandwidth_bytes_per_s
        shortest_s = max(compute_s, memory_s)
        intensity = intensity_flop_per_byte(kernel.flop, kernel.hbm_bytes)
        bound = "compute" if compute_s > memory_s else "memory"
        reach = kernel.flop / shortest_s
    return RooflineKernel(
        phase=phase,
        num_sequences=num,
        context_tokens=context,
        kernel=kernel.name,
        compute_format=kernel.compute,
        flop=kernel.flop,
        hbm_bytes=kernel.hbm_bytes,
        intensity_flop_per_byte=intensity,
        bound=bound,
        attainable_flop_per_s=reach,
        time_s=shortest_s,
        derated_time_s=kernel.time_s,
        step_fraction=kernel.time_s / whole_s if whole_s else 0.0,
    )
