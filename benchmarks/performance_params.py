"""Parameters of the step model that measured runs may move, with their priors.

Every parameter is the logarithm of a factor on what kernels or a first guess say; the ridge pulls
it to nought. Factors of one kind are sums over levels: a part common to all accelerators (for
products of their format, for experts of the family of kernels), and for products and experts a part
of the generation's own: elsewhere that bought nothing on rows left out. An accelerator without rows
takes the common parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from capplan.accuracy.settings import RunSettings
from capplan.performance.kernel_rates import KernelRates
from capplan.performance.overheads import EngineOverheads
from capplan.performance.products import expert_families
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.specs.architecture import ArchitectureSpec, KernelServing, Serving, architecture_of
from capplan.specs.tensors import tensor_format, tensors_of

# (kind, whose, which): ("arch", "Hopper", "link"), ("moe", ("Hopper", "triton", "bf16"), ...),
# ("moe", "triton", ...) of a family, ("fmt", "fp8", ...) of a format, "*" of all.
Name = tuple[str, object, str]

ARCHITECTURE = ("fixed", "attention", "prefill", "latency", "launch", "link")
KERNEL = ("compute", "bandwidth", "fixed")
# Spread of the priors, of natural logarithms. Which parts there are and how wide was chosen by
# the errors of rows left out (performance_folds.py): a part that bought nothing there is none.
COMMON = {
    "arch": {"fixed": 0.3, "attention": 0.1, "prefill": 0.08, "latency": 0.6, "launch": 0.4,
             "link": 0.2, "spread": 0.5},
    "fmt": {"compute": 0.12, "bandwidth": 0.06, "fixed": 0.35},
}  # fmt: skip
FAMILY = {"compute": 0.3, "bandwidth": 0.15, "fixed": 0.35}  # of expert kernels
OWN = {
    "moe": {"compute": 0.3, "bandwidth": 0.15, "fixed": 0.35},
    "fmt": {"compute": 0.12, "bandwidth": 0.06},
}
LINK = 0.95  # of the bus bandwidth that kernels reach on their own
SPREAD = 0.1  # of what GPUs take between two collectives


@dataclass(frozen=True)
class Owners:
    """Whose parameters a row depends on."""

    arch: str
    eng: str
    fmt: tuple[str, str]  # generation, format of the dense products
    moe: tuple[str, str, str] | None  # generation, kernel family, format of the experts

    def has(self, name: Name) -> bool:
        kind, whose, _ = name
        if whose == "*":
            return kind == "arch"
        if kind == "fmt" and isinstance(whose, str):
            return self.fmt[1] == whose
        if kind == "moe" and isinstance(whose, str):
            return self.moe is not None and self.moe[1] == whose
        return getattr(self, kind) == whose


class World:
    """The step model at a set of parameters; without any, at its priors."""

    def __init__(self, theta: dict[Name, float] | None = None) -> None:
        self.theta = theta or {}

    def factor(self, kind: str, which: str, *levels: object) -> float:
        return math.exp(sum(self.theta.get((kind, level, which), 0.0) for level in levels))

    def architecture(self, spec: ArchitectureSpec) -> ArchitectureSpec:
        """A generation with corrections by these parameters, and none other."""
        stem = spec.name
        plain = {w: self.factor("arch", w, "*") for w in ARCHITECTURE}
        serving = Serving(
            **plain | {"link": min(1.0, LINK * plain["link"])},
            spread=SPREAD * self.factor("arch", "spread", "*"),
            products={
                fmt: KernelServing(**{w: self.factor("fmt", w, fmt, (stem, fmt)) for w in KERNEL})
                for fmt in spec.products
            },
            experts={
                family: {
                    fmt: KernelServing(
                        **{w: self.factor("moe", w, family, (stem, family, fmt)) for w in KERNEL}
                    )
                    for fmt in table
                }
                for family, table in spec.experts.items()
            },
        )
        return spec.model_copy(update={"serving": serving})

    def model(self, settings: RunSettings, engine: EngineOverheads) -> StepModel:
        """The step model of a deployment."""
        hardware = settings.hardware
        own = architecture_of(hardware.architecture)
        new = self.architecture(own)
        rates = derated_rates(
            hardware, settings.tp, dp=settings.dp, pp=settings.pp,
            fixed_factor=engine.fixed_factor, engine=engine.kernels,
        )  # fmt: skip
        slower = new.serving.latency / own.serving.latency
        wider = new.serving.link / own.serving.link
        links = {
            name: rate
            if rate is None or rate.through_host
            else replace(
                rate,
                latency_s=rate.latency_s * slower,
                bus_bandwidth_bytes_per_s=rate.bus_bandwidth_bytes_per_s * wider,
            )
            for name in ("all_reduce", "exchange", "hop")
            for rate in (getattr(rates, name),)
        }
        ranks = settings.tp * settings.dp
        kernels = KernelRates(
            hardware, new, engine.fixed_factor, ranks=ranks, engine=engine.kernels
        )
        return StepModel(
            settings.model, hardware, replace(rates, kernels=kernels, **links),
            tp=settings.tp, pp=settings.pp, dp=settings.dp, ep=settings.ep,
            dtype=settings.dtype, kv_dtype=settings.kv_dtype, engine=engine,
        )  # fmt: skip


def is_common(name: Name) -> bool:
    """Whether a parameter is of all accelerators."""
    kind, whose, _ = name
    return whose == "*" or (kind in ("fmt", "moe") and isinstance(whose, str))


def owners_of(settings: RunSettings, overheads: EngineOverheads) -> Owners:
    """The parameters that a deployment's step times depend on."""
    spec = architecture_of(settings.hardware.architecture)
    kernels = KernelRates(settings.hardware, spec)
    tensors = [t for t in tensors_of(settings.model) if t.is_matrix and t.active_copies]
    dense = [t for t in tensors if not t.num_experts and t.group in ("attention", "dense_ffn")]
    experts = [t for t in tensors if t.num_experts]
    moe = None
    if experts:
        stored = tensor_format(experts[0], settings.model, settings.dtype)
        families = expert_families(overheads.expert_backends, stored)
        moe = (spec.name, *kernels.expert_curve(families, stored))
    stored = tensor_format(dense[-1], settings.model, settings.dtype)
    return Owners(spec.name, overheads.name, (spec.name, kernels.product_curve(stored)), moe)


def parameters(owners: Iterable[Owners]) -> dict[Name, float]:
    """Every parameter that some row depends on, with the spread of its prior."""
    found = list(owners)
    spread: dict[Name, float] = {}
    for which, sigma in COMMON["arch"].items():
        spread["arch", "*", which] = sigma
    for fmt in sorted({o.fmt[1] for o in found}):
        spread |= {("fmt", fmt, which): sigma for which, sigma in COMMON["fmt"].items()}
    for family in sorted({o.moe[1] for o in found if o.moe}):
        spread |= {("moe", family, which): sigma for which, sigma in FAMILY.items()}
    for kind, table in OWN.items():
        for whose in sorted({getattr(o, kind) for o in found} - {None}):
            spread |= {(kind, whose, which): sigma for which, sigma in table.items()}
    return spread
