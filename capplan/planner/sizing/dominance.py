"""Accelerators that are worse than another in everything: chance never puts them before it."""

from __future__ import annotations

from collections.abc import Iterable

from capplan.planner.money import price_of
from capplan.planner.question import Question
from capplan.specs.hardware import HardwareSpec, Pcie, ScaleUp


def beaten_by(questions: Iterable[Question]) -> dict[str, tuple[str, ...]]:
    """By accelerator: those of the others that are no worse in anything and better in something.

    Only accelerators of one architecture, in like nodes and with the same measured shares can be
    compared so.
    """
    known = {question.hardware_id: question for question in questions}
    return {
        name: tuple(
            other for other, better in known.items() if other != name and _beats(better, question)
        )
        for name, question in known.items()
    }


def _beats(one: Question, other: Question) -> bool:
    a, b = one.hardware, other.hardware
    if (a.architecture, a.node, a.measured) != (b.architecture, b.node, b.measured):
        return False
    if not set(b.compute.peak) <= set(a.compute.peak):
        return False
    good = [(a.compute.peak[name], peak) for name, peak in b.compute.peak.items()]
    good += [(a.memory.bandwidth, b.memory.bandwidth)]
    good += [(a.visible_memory_bytes, b.visible_memory_bytes)]
    good += zip(_links(a), _links(b), strict=True)
    good += [(-_usd_per_hour(one), -_usd_per_hour(other)), (-_watts(a), -_watts(b))]
    return all(mine >= its for mine, its in good) and any(mine > its for mine, its in good)


def _links(hardware: HardwareSpec) -> tuple[float, ...]:
    fast: ScaleUp | None = hardware.scale_up
    slow: Pcie | None = hardware.pcie
    return (
        fast.bandwidth if fast else 0.0,
        (fast.peer_bandwidth or fast.bandwidth) if fast else 0.0,
        fast.domain if fast else 0,
        slow.bandwidth if slow else 0.0,
        slow.peer_to_peer if slow else 0,
    )


def _usd_per_hour(question: Question) -> float:
    """What is not known is taken for nothing on both sides, and for more than any price on one."""
    price = price_of(question.hardware, question.fleet)
    return float("inf") if price is None else price.usd_per_gpu_hour


def _watts(hardware: HardwareSpec) -> float:
    return float("inf") if hardware.board is None else hardware.board.tdp
