"""Which tensor-parallel degrees a model and an accelerator allow."""

from __future__ import annotations

from capplan.errors import UnsupportedError
from capplan.specs.ffns import MoEFFN
from capplan.specs.hardware import HardwareSpec
from capplan.specs.mixers import Attention, CompressedAttention, GatedDeltaNet, Mamba1, Mamba2
from capplan.specs.model import ModelSpec

MAX_TP = 64
# Servers carry up to eight cards over PCIe, whatever the usual node of a card is: 8 L4 in AWS
# g6.48xlarge, and RTX 4090 by the two and four in public benchmarks.
PCIE_GPUS = 8


def tp_fault(model: ModelSpec, tp: int) -> str | None:
    """Why the model cannot be split over ``tp`` ranks, or None.

    Query heads must divide; KV heads must divide or be replicated evenly (vLLM's rule).
    """
    for mixer in model.mixers.values():
        if isinstance(mixer, GatedDeltaNet):
            heads = {
                "linear key heads": mixer.num_key_heads,
                "linear value heads": mixer.num_value_heads,
            }
        elif isinstance(mixer, Mamba2):
            heads = {"Mamba heads": mixer.num_heads}
        elif isinstance(mixer, CompressedAttention):
            heads = {
                "attention heads": mixer.num_heads,
                "output groups": mixer.output_groups,
            }
        elif isinstance(mixer, Mamba1):
            heads = {"Mamba channels": mixer.inner_size}
        else:
            heads = {"attention heads": mixer.num_heads}
        for what, num in heads.items():
            if num % tp:
                return f"{num} {what} cannot be split evenly"
        if isinstance(mixer, Attention):
            num = mixer.num_kv_heads
            if num % tp and tp % num:
                return f"{num} KV heads can be neither split nor replicated evenly"
    return None


def domain_gpus(hardware: HardwareSpec) -> int:
    """The largest group that TP may span: the fast link's domain, or the node over PCIe.

    One where the file names no link at all.
    """
    fast = hardware.scale_up.domain if hardware.scale_up is not None else 1
    return max(fast, hardware.node.gpus) if hardware.pcie is not None else fast


def allowed_tps(model: ModelSpec, hardware: HardwareSpec) -> list[int]:
    """Powers of two, as engines are run, within the domain and dividing the heads."""
    limit = min(domain_gpus(hardware), MAX_TP)
    powers = [2**i for i in range(limit.bit_length()) if 2**i <= limit]
    return [tp for tp in powers if tp_fault(model, tp) is None]


def check_copies(model: ModelSpec, hardware: HardwareSpec, tp: int, dp: int, ep: int) -> None:
    """Raise UnsupportedError for copies of the attention that do not share their experts.

    All ranks exchange their tokens in every layer: what that takes between nodes is not known.

    Experts are dealt whole over the ``tp`` x ``dp`` ranks, as engines do it with expert
    parallelism on.
    """
    if dp == 1:
        return
    experts = num_experts(model)
    if not experts:
        raise UnsupportedError(
            f"dp {dp} shares experts, and {model.name} has none",
            hint=f"write {dp} replicas: each is a whole copy",
        )
    if ep != tp * dp:
        raise UnsupportedError(
            f"dp {dp} with ep {ep} is not simulated: experts are dealt over all tp x dp ranks",
            hint=f"write ep: {tp * dp}",
        )
    if experts < tp * dp:
        raise UnsupportedError(
            f"{experts} experts are fewer than the {tp * dp} ranks", hint="lower tp or dp"
        )
    if fault := link_fault(hardware, tp * dp):
        raise UnsupportedError(
            f"tp {tp} x dp {dp} does not work: {fault}", hint="lower tp or dp, and add replicas"
        )


def num_experts(model: ModelSpec) -> int:
    """Routed ones of a layer; 0 for a dense model."""
    return max((f.num_experts for f in model.ffns.values() if isinstance(f, MoEFFN)), default=0)


def linked_gpus(hardware: HardwareSpec) -> int:
    """As many as any link joins in one server."""
    return max(domain_gpus(hardware), PCIE_GPUS if hardware.pcie is not None else 1)


def link_fault(hardware: HardwareSpec, tp: int) -> str | None:
    """Why no link joins so many accelerators, or None."""
    limit = linked_gpus(hardware)
    if tp <= limit:
        return None
    return f"{hardware.name} links {limit} accelerator{'s' if limit > 1 else ''}"


def repeats_kv(model: ModelSpec) -> bool:
    """Whether every TP rank of a model with experts holds the same KV: a latent, say."""
    kinds = {mixer.kind for mixer in model.mixers.values()}
    return model.has_experts and kinds <= {"mla", "compressed"}


def check_tp(model: ModelSpec, hardware: HardwareSpec, tp: int) -> None:
    """Raise UnsupportedError when ``tp`` does not divide the model or leaves the server.

    What is asked for may span more cards over PCIe than the usual node has; what is searched
    (`allowed_tps`) does not.
    """
    fault = tp_fault(model, tp) or link_fault(hardware, tp)
    if fault is not None:
        works = ", ".join(str(allowed) for allowed in allowed_tps(model, hardware))
        raise UnsupportedError(f"--tp {tp} does not work: {fault}", hint=f"use one of: {works}")
