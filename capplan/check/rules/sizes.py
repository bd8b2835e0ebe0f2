"""Sizes in messages, and the room that a GPU leaves for KV."""

from __future__ import annotations

from dataclasses import dataclass

from capplan import units
from capplan.check.cases import Case
from capplan.performance import kv_engine
from capplan.performance.kv_pool import KvPool
from capplan.units import GIB


def gib(size: float) -> str:
    """A size for people: GiB in three digits."""
    return units.format_bytes(round(max(size, 0.0)), binary=True, digits=3)


def seconds(time_s: float) -> str:
    return units.format_duration(time_s, digits=3)


@dataclass(frozen=True)
class Room:
    """The memory of one GPU under a deployment: ``extra_bytes`` is what options add to it."""

    setup: kv_engine.Deployment
    extra_bytes: float

    @property
    def weights_bytes(self) -> float:
        return self.setup.budget.size("weights")

    @property
    def share_bytes(self) -> float:
        """What the engine may take."""
        return self.setup.visible_bytes * self.setup.budget.memory_share

    def pool(self, bound: str) -> KvPool:
        """The KV pool at the `low`, `likely` or `high` end of what logs show."""
        field = "pool_bytes" if bound == "likely" else f"pool_{bound}_bytes"
        rooms = [getattr(budget, field) + self.extra_bytes for budget in self.setup.budgets]
        return self.setup.pool_of(rooms)

    def steps(self) -> tuple[str, ...]:
        """The sum, item by item."""
        setup, budget = self.setup, self.setup.budget
        shown = [f"GPU: {setup.hardware.name} shows {gib(setup.visible_bytes)} to a process"]
        rule = budget.memory_share_option
        if setup.engine.reserve_bytes is None:
            shown.append(f"{rule} {budget.memory_share:g}: {gib(self.share_bytes)}")
        for term in budget.terms:
            if term.name == "left free":
                continue
            between = (
                f" ({gib(term.low_bytes)} to {gib(term.high_bytes)})" if term.is_estimate else ""
            )
            shown.append(f"- {term.name}: {gib(term.likely_bytes)}{between}")
        if self.extra_bytes:
            shown.append(f"+ moved to the host or not taken: {gib(self.extra_bytes)}")
        left = budget.pool_bytes + self.extra_bytes
        high = budget.pool_high_bytes + self.extra_bytes
        signed = gib(left) if left >= 0 else f"-{gib(-left)}"
        top = gib(high) if high >= 0 else f"-{gib(-high)}"
        shown.append(f"= {signed} for KV, at most {top}")
        return tuple(shown)


def rooms(case: Case) -> tuple[Room, ...]:
    """One for each accelerator that the labels may mean; empty where memory is not known."""
    deployment = case.deployment
    # One that is set to nothing (`--kv-cache-memory-bytes=${X-}`) is not set.
    size = deployment.flag("kv_memory")
    if size is not None and size.text != "":
        return ()
    if deployment.flag("num_blocks") is not None or deployment.hidden:
        return ()
    offload = deployment.number("cpu_offload")
    if offload is None and deployment.flag("cpu_offload") is not None:
        return ()
    found = []
    eager = deployment.flag("enforce_eager")
    for setup in case.setups:
        extra = (offload or 0.0) * GIB
        if eager is not None and eager.switch:
            extra += setup.budget.size("CUDA graphs (estimate)")
        found.append(Room(setup, extra))
    return tuple(found)


def first_room(case: Case) -> Room | None:
    """That of the likeliest accelerator."""
    return next(iter(rooms(case)), None)
