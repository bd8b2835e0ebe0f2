"""What kernels reach on one accelerator: its own measurements in its generation's curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from capplan.formulas.number_formats import FORMATS
from capplan.formulas.order import expected_largest
from capplan.formulas.smooth import smooth_max
from capplan.performance.overheads import PLAIN_KERNELS, EngineKernels
from capplan.specs.architecture import ArchitectureSpec, KernelServing, ProductCurve
from capplan.specs.hardware import HardwareSpec

C = TypeVar("C", bound=ProductCurve)

WEIGHT_ONLY = "weight-only"
MOST_FRACTION = 0.97  # of a peak or a bandwidth: no kernel measured reaches more
_NO_CORRECTION = KernelServing.model_construct()  # all defaults: nothing to validate
# Where a generation has no curve for a format: the one that its kernels are built like.
_STAND_INS = {
    "fp16": "bf16", "fp32": "bf16", "mxfp8": "fp8-block128", "int8": "fp8", "fp4": "nvfp4",
    "nvfp4": "fp8", "fp8-block128": "fp8", "fp8": "bf16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelRate:
    """One kind of kernel; ``tile_rows`` are computed for each expert beyond its tokens."""

    flops_per_s: float
    bytes_per_s: float
    fixed_s: float
    norm: float
    tile_rows: float = 0.0

    def time_s(self, flop: float, moved_bytes: float) -> float:
        """Fixed time, and the smooth maximum of compute and traffic."""
        return self.fixed_s + smooth_max(
            flop / self.flops_per_s, moved_bytes / self.bytes_per_s, self.norm
        )


@dataclass(frozen=True, slots=True)
class AttentionRates:
    decode_bytes_per_s: float
    decode_fixed_s: float
    prefill_flops_per_s: float
    saturation_tokens: float
    prefill_fixed_s: float
    state_bytes_per_s: float
    state_flops_per_s: float
    state_fixed_s: float
    decode_flops_per_s: float  # with the query heads of a group together, as matrices
    # Query heads in groups other than these each read the cache by themselves, on vector units.
    decode_groups: tuple[int, ...] | None
    vector_flops_per_s: float


@dataclass(frozen=True, slots=True)
class KernelRates:
    """Rates of one accelerator's kernels under one engine.

    ``fixed_factor`` scales what each kernel takes besides its work: an engine that fuses and
    replays graphs leaves less between kernels than one that launches them one by one.
    """

    hardware: HardwareSpec
    architecture: ArchitectureSpec
    fixed_factor: float = 1.0
    ranks: int = 1  # that wait for one another at each collective
    # Of one's own servers, from a calibration: on all compute and on all traffic.
    compute_factor: float = 1.0
    bandwidth_factor: float = 1.0
    engine: EngineKernels = PLAIN_KERNELS

    def product(self, number_format: str, compute: str) -> KernelRate:
        """Matrix products with weights of one format, computed in another."""
        name, curve = _curve(self.architecture.products, number_format)
        factor = self.architecture.serving.products.get(name, _NO_CORRECTION)
        share = self._measured_compute(number_format, compute, curve)
        streaming = self._measured_bandwidth(number_format, curve)
        return KernelRate(
            self._flops(compute, _share(share, factor.compute * self.engine.compute)),
            self._bandwidth(_share(streaming, factor.bandwidth * self.engine.bandwidth)),
            curve.fixed * factor.fixed * self.fixed_factor,
            curve.norm,
        )

    def compute_fraction(self, compute: str) -> float:
        """Share of a peak that large products reach in a running server."""
        number_format = {"fp4": "nvfp4"}.get(compute, compute)
        if number_format not in FORMATS:
            number_format = "bf16"
        return self.product(number_format, compute).flops_per_s / self._peak(compute)

    @property
    def bandwidth_fraction(self) -> float:
        """Share of the bandwidth at which 16-bit weights are streamed."""
        peaks = self.hardware.compute.peak
        compute = "bf16" if "bf16" in peaks else str(next(iter(peaks)))
        return self.product("bf16", compute).bytes_per_s / self.hardware.memory.bandwidth

    def _measured_compute(self, number_format: str, compute: str, curve: ProductCurve) -> float:
        """The accelerator's own share of peak where its file has one for such products."""
        own = self.hardware.measured.gemm.get(compute)  # type: ignore[call-overload]
        plain = FORMATS[number_format].compute is not None and FORMATS[number_format].block is None
        return own.fraction if own and (plain or number_format == "nvfp4") else curve.compute

    def _measured_bandwidth(self, number_format: str, curve: ProductCurve) -> float:
        own = self.hardware.measured.memory_bandwidth
        return own.fraction if own and FORMATS[number_format].bits == 16 else curve.bandwidth

    def experts(self, families: tuple[str, ...], number_format: str, compute: str) -> KernelRate:
        """The grouped products of one layer's experts; of ``families`` the first that is known."""
        family, name = self.expert_curve(families, number_format)
        curve = self.architecture.experts[family][name]
        factor = self.architecture.serving.experts.get(family, {}).get(name, _NO_CORRECTION)
        return KernelRate(
            self._flops(compute, _share(curve.compute, factor.compute * self.engine.compute)),
            self._bandwidth(_share(curve.bandwidth, factor.bandwidth * self.engine.bandwidth)),
            curve.fixed * factor.fixed * self.fixed_factor,
            curve.norm,
            curve.tile,
        )

    def expert_curve(self, families: tuple[str, ...], number_format: str) -> tuple[str, str]:
        """Family and format of the curve that stands for these experts."""
        known = self.architecture.experts
        family = next((name for name in families if name in known), next(iter(known)))
        return family, _curve(known[family], number_format)[0]

    def product_curve(self, number_format: str) -> str:
        """The format of the curve that stands for dense products."""
        return _curve(self.architecture.products, number_format)[0]

    def attention(self, compute: str) -> AttentionRates:
        curve, serving = self.architecture.attention, self.architecture.serving
        engine, fixed = self.engine, serving.fixed * self.fixed_factor
        streaming = _share(curve.bandwidth, serving.attention * engine.decode)
        matrices = _share(curve.compute, serving.prefill)
        peaks = self.hardware.compute.peak
        return AttentionRates(
            decode_bytes_per_s=self._bandwidth(streaming),
            decode_fixed_s=curve.decode_fixed * fixed,
            prefill_flops_per_s=self._flops(compute, _share(matrices, engine.prefill)),
            saturation_tokens=curve.saturation,
            prefill_fixed_s=curve.prefill_fixed * fixed,
            state_bytes_per_s=self._bandwidth(curve.state_bandwidth),
            state_flops_per_s=self._flops(compute, curve.state_compute),
            state_fixed_s=curve.state_fixed * fixed,
            decode_flops_per_s=self._flops(compute, matrices),
            decode_groups=engine.decode_groups,
            vector_flops_per_s=curve.vector * peaks.get("fp32", self._peak(compute)),
        )

    def elementwise(self) -> KernelRate:
        curve = self.architecture.elementwise
        fixed = curve.fixed * self.architecture.serving.fixed * self.fixed_factor
        return KernelRate(float("inf"), self._bandwidth(curve.bandwidth), fixed, 1.0)

    def _peak(self, compute: str) -> float:
        return self.hardware.compute.peak[compute]  # type: ignore[index]

    @property
    def _slowest(self) -> float:
        """Time of the slowest rank over the mean."""
        return 1 + self.architecture.serving.spread * expected_largest(self.ranks)

    def _flops(self, compute: str, share: float) -> float:
        reached = min(MOST_FRACTION, share * self.compute_factor)
        return self._peak(compute) * reached / self._slowest

    def _bandwidth(self, share: float) -> float:
        reached = min(MOST_FRACTION, share * self.bandwidth_factor)
        return self.hardware.memory.bandwidth * reached / self._slowest


def _share(fraction: float, factor: float) -> float:
    """A corrected share: never quite the whole."""
    return min(MOST_FRACTION, fraction * factor)


def curve_name(number_format: str) -> str:
    """The curve of a weight format: its own name, or that of all that expand to 16 bits.

    >>> curve_name("int4"), curve_name("fp8-block128")
    ('weight-only', 'fp8-block128')
    """
    return number_format if FORMATS[number_format].compute else WEIGHT_ONLY


def _curve(curves: Mapping[str, C], number_format: str) -> tuple[str, C]:
    name = curve_name(number_format)
    while name not in curves:
        # A family that was measured in no format like it: its first curve.
        name = _STAND_INS.get(name) or next(iter(curves))
    return name, curves[name]
