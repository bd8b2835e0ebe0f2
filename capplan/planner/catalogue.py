"""Facts about one accelerator or one model, as results that can be listed and shown."""

from __future__ import annotations

from collections import defaultdict

from capplan.formulas.roofline import ridge_flop_per_byte
from capplan.results.catalogue import (
    HardwareFacts,
    LayerFacts,
    ModelFacts,
    PriceFacts,
    TensorGroupFacts,
)
from capplan.specs.catalogue import Found
from capplan.specs.ffns import FFN
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_bytes_per_token
from capplan.specs.mixers import Mixer
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import (
    num_params_active,
    num_params_total,
    tensor_bytes,
    tensor_format,
    tensors_of,
    weight_bytes,
)


def hardware_facts(found: Found[HardwareSpec]) -> HardwareFacts:
    """The figures of an accelerator's file, with what follows from them."""
    spec = found.spec
    peaks = {str(name): peak for name, peak in spec.compute.peak.items()}
    narrow = [peaks[name] for name in ("bf16", "fp16") if name in peaks]
    price = spec.list_price
    return HardwareFacts(
        id=found.id,
        name=spec.name,
        vendor=spec.vendor,
        architecture=spec.architecture,
        year=spec.year,
        aliases=spec.aliases,
        peak_flops_per_s=peaks,
        marketed_memory_bytes=spec.memory.marketed,
        driver_memory_bytes=spec.memory.driver,
        visible_memory_bytes=spec.visible_memory_bytes,
        visible_memory_is_estimate=spec.visible_memory_is_estimate,
        memory_type=spec.memory.type,
        bandwidth_bytes_per_s=spec.memory.bandwidth,
        l2_bytes=spec.memory.l2,
        ridge_flop_per_byte=ridge_flop_per_byte(narrow[0], spec.memory.bandwidth)
        if narrow
        else None,
        scale_up=spec.scale_up.name if spec.scale_up else None,
        scale_up_bytes_per_s=spec.scale_up.bandwidth if spec.scale_up else None,
        scale_up_domain_gpus=spec.scale_up.domain if spec.scale_up else None,
        pcie_bytes_per_s=spec.pcie.bandwidth if spec.pcie else None,
        tdp_w=spec.board.tdp if spec.board else None,
        gpus_per_node=spec.node.gpus,
        network_bytes_per_s=spec.node.network,
        instances=spec.instances,
        usd_per_gpu_hour=price.usd_per_gpu_hour if price else None,
        prices=tuple(
            PriceFacts(
                p.provider, p.instance, p.region, p.tier, p.usd_per_gpu_hour, p.as_of.isoformat()
            )
            for p in spec.prices
        ),
        gemm_fraction={str(k): v.fraction for k, v in spec.measured.gemm.items()},
        bandwidth_fraction=spec.measured.memory_bandwidth.fraction
        if spec.measured.memory_bandwidth
        else None,
        notes=tuple(
            note for note in (spec.compute.note, spec.memory.note, spec.note) if note is not None
        ),
        sources=_sources(spec),
    )


def _sources(spec: HardwareSpec) -> dict[str, tuple[str, ...]]:
    parts = {
        "compute": spec.compute.sources,
        "memory": spec.memory.sources,
        "scale_up": spec.scale_up.sources if spec.scale_up else (),
        "board": spec.board.sources if spec.board else (),
        "measured": tuple(dict.fromkeys(m.source for m in spec.measured.gemm.values())),
        "prices": tuple(dict.fromkeys(price.source for price in spec.prices)),
    }
    return {name: sources for name, sources in parts.items() if sources}


def model_facts(found: Found[ModelSpec]) -> ModelFacts:
    """Sizes of a model: layers by kind, parameters and bytes by tensor group."""
    model = found.spec
    return ModelFacts(
        id=found.id,
        name=model.name,
        aliases=model.aliases,
        sources=model.sources,
        num_params_total=num_params_total(model),
        num_params_active=num_params_active(model),
        num_params_mtp=model.mtp_parameters,
        not_counted=model.not_counted,
        weight_format=model.stored_format,
        weight_bytes=weight_bytes(model),
        kv_bytes_per_token=kv_bytes_per_token(model, model.activation_dtype),
        kv_dtype=model.activation_dtype,
        num_layers=model.num_layers,
        hidden_size=model.hidden_size,
        vocab_size=model.vocab_size,
        max_context_tokens=model.max_context_tokens,
        layers=_layer_facts(model),
        groups=_group_facts(model),
        note=model.note,
    )


def _layer_facts(model: ModelSpec) -> tuple[LayerFacts, ...]:
    """Layer kinds with how many there are, in the order of their first use."""
    counts: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for num, mixer, ffn in model.layer_runs:
        counts[mixer, ffn] += num
    return tuple(
        LayerFacts(
            num, mixer and _sentence(model.mixers[mixer]), ffn and _sentence(model.ffns[ffn])
        )
        for (mixer, ffn), num in counts.items()
    )


def _sentence(part: Mixer | FFN) -> str:
    """`attention: num_heads 32, num_kv_heads 8, head_dim 128`: the file's own words."""
    fields = part.model_dump(exclude_defaults=True, exclude={"kind"})
    return f"{part.kind}: {', '.join(_words(key, value) for key, value in fields.items())}"


def _words(key: str, value: object) -> str:
    if isinstance(value, dict):
        return f"{key} ({', '.join(_words(inner, part) for inner, part in value.items())})"
    return {True: key, False: f"no {key}"}[value] if isinstance(value, bool) else f"{key} {value}"


def _group_facts(model: ModelSpec) -> tuple[TensorGroupFacts, ...]:
    params: dict[str, int] = defaultdict(int)
    active: dict[str, int] = defaultdict(int)
    sizes: dict[str, int] = defaultdict(int)
    formats: dict[str, dict[str, None]] = defaultdict(dict)
    for tensor in tensors_of(model):
        number_format = tensor_format(tensor, model)
        params[tensor.group] += tensor.num_params
        active[tensor.group] += tensor.num_active_params
        sizes[tensor.group] += tensor_bytes(tensor, number_format)
        formats[tensor.group][number_format] = None
    return tuple(
        TensorGroupFacts(
            group, params[group], active[group], sizes[group], ", ".join(formats[group])
        )
        for group in params
    )
