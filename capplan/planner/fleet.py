"""What is bought: whole nodes for replicas and their spares."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.formulas import capacity
from capplan.planner.question import Question


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is bought: whole nodes for the replicas and their spares."""

    num_gpus: int  # of the replicas that carry the load
    num_nodes: int
    gpus_per_node: int

    @property
    def num_bought(self) -> int:
        return self.num_nodes * self.gpus_per_node


def fleet_of(question: Question, num_replicas: int, gpus_per_replica: int) -> Fleet:
    """A replica never straddles a node that it fits in."""
    node = question.fleet.gpus_per_node or question.hardware.node.gpus
    replicas = num_replicas + question.fleet.num_spares
    if gpus_per_replica <= node:
        in_one = node // gpus_per_replica
        nodes = capacity.round_up(replicas, in_one) // in_one
    else:
        nodes = replicas * (capacity.round_up(gpus_per_replica, node) // node)
    return Fleet(num_replicas * gpus_per_replica, nodes, node)
