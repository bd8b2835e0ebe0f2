"""Where prefill and decode sit under the roof, over batch and context."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.formulas.roofline import intensity_flop_per_byte, mbu, mfu, ridge_flop_per_byte
from capplan.performance.bands import band_for, band_key
from capplan.performance.batch import Batch, Chunk
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.performance.rates import Rates, derated_rates, ideal_rates
from capplan.performance.step import StepModel
from capplan.planner.bands import BAND_ENGINE
from capplan.planner.roofline_kernels import kernels_at
from capplan.results.bands import ErrorBand
from capplan.results.roofline import GpuRoofline, RooflineKernel, RooflinePoint
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec


def roofline(
    model: ModelSpec,
    hardware_id: str,
    hardware: HardwareSpec,
    *,
    tp: int,
    dtype: str | None,
    kv_dtype: str,
    batches: Sequence[int],
    contexts: Sequence[int],
    calibration: Calibration = UNCALIBRATED,
    with_kernels: bool = False,
) -> GpuRoofline:
    """Points for each context and batch: one prompt's prefill, and one decode step.

    ``with_kernels``: each of them kernel by kernel as well.

    Raises CapplanError when the accelerator cannot compute in the weights' format.
    """

    def at(rates: Rates) -> StepModel:
        return StepModel(model, hardware, rates, tp=tp, dtype=dtype, kv_dtype=kv_dtype)

    ideal = at(ideal_rates(hardware))
    derated = at(calibration.rates(derated_rates(hardware, tp)))
    # A step alone is most like those of a server at a light load.
    own = calibration.own and calibration.own.at_tp(tp)
    key = band_key(model, hardware, BAND_ENGINE, tp, 0.0, own)
    ttft, tpot = band_for("ttft", key), band_for("tpot", key)
    asked = [("prefill", 1, context) for context in contexts]
    asked += [("decode", num, context) for context in contexts for num in batches]
    points: list[RooflinePoint] = []
    kernels: list[RooflineKernel] = []
    for phase, num, context in asked:
        batch = _batch(ideal, phase, num, context)
        band, new = (ttft, context) if phase == "prefill" else (tpot, num)
        points.append(_point(phase, ideal, derated, band, batch, num, context, new))
        if with_kernels:
            kernels += kernels_at(ideal.rates, derated, batch, phase, num, context)
    peak = ideal.rates.flops_per_s[ideal.gemm_format]
    bandwidth = ideal.rates.bandwidth_bytes_per_s
    return GpuRoofline(
        hardware=hardware_id,
        model=model.name,
        dtype=ideal.weight_format,
        compute_format=ideal.gemm_format,
        tp=tp,
        peak_flops_per_s=peak,
        bandwidth_bytes_per_s=bandwidth,
        ridge_flop_per_byte=ridge_flop_per_byte(peak, bandwidth),
        derated_peak_flops_per_s=derated.rates.flops_per_s[derated.gemm_format],
        derated_bandwidth_bytes_per_s=derated.rates.bandwidth_bytes_per_s,
        points=tuple(points),
        bands=(ttft, tpot),
        kernels=tuple(kernels),
    )


def _batch(steps: StepModel, phase: str, num: int, context: int) -> Batch:
    """One prompt, or one step of so many decodes."""
    if phase == "prefill":
        return steps.batch(0.0, {}, [Chunk(context)])
    return Batch(float(num), steps.uniform_reads(float(num), context))


def _point(
    phase: str,
    ideal: StepModel,
    derated: StepModel,
    band: ErrorBand,
    batch: Batch,
    num_sequences: int,
    context: int,
    new_tokens: int,
) -> RooflinePoint:
    work = ideal.work(batch)
    rates = ideal.rates
    # Products in several formats run one after the other on the same tensor cores.
    compute_s = sum(flop / rates.flops_per_s[fmt] for fmt, flop in work.flop_by_format.items())
    memory_s = work.hbm_bytes / rates.bandwidth_bytes_per_s
    time_s = max(compute_s, memory_s)
    derated_time_s = derated.time(batch).total_s
    low_s, high_s = band.around(derated_time_s)
    return RooflinePoint(
        phase=phase,
        num_sequences=num_sequences,
        context_tokens=context,
        new_tokens=new_tokens,
        flop=work.flop,
        hbm_bytes=work.hbm_bytes,
        weight_bytes=work.weight_bytes,
        kv_bytes=work.kv_bytes,
        activation_bytes=work.activation_bytes,
        intensity_flop_per_byte=intensity_flop_per_byte(work.flop, work.hbm_bytes),
        bound="compute" if compute_s > memory_s else "memory",
        attainable_flop_per_s=work.flop / time_s,
        peak_fraction=compute_s / time_s,
        time_s=time_s,
        derated_time_s=derated_time_s,
        tokens_per_s=new_tokens / time_s,
        band_low_s=low_s,
        band_high_s=high_s,
        mfu=sum(
            mfu(flop, derated_time_s, rates.flops_per_s[fmt])
            for fmt, flop in work.flop_by_format.items()
        ),
        mbu=mbu(work.weight_bytes + work.kv_bytes, derated_time_s, rates.bandwidth_bytes_per_s),
    )
