"""What is bought: whole nodes for replicas and their spares."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capplan.formulas import capacity
from capplan.formulas.availability import availability, k_of_n_availability, spares_for
from capplan.planner.question import Question
from capplan.results.bands import BandedFigure

MOST_SPARES = 1000


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is bought: whole nodes for the replicas and their spares."""

    num_gpus: int  # of the replicas that carry the load
    num_spares: int  # replicas
    num_nodes: int
    gpus_per_node: int

    @property
    def num_bought(self) -> int:
        return self.num_nodes * self.gpus_per_node


def fleet_of(question: Question, num_replicas: int, gpus_per_replica: int) -> Fleet:
    """A replica never straddles a node that it fits in."""
    node = question.fleet.gpus_per_node or question.hardware.node.gpus
    spares = num_spares(question, num_replicas, gpus_per_replica)
    replicas = num_replicas + spares
    if gpus_per_replica <= node:
        in_one = node // gpus_per_replica
        nodes = capacity.round_up(replicas, in_one) // in_one
    else:
        nodes = replicas * (capacity.round_up(gpus_per_replica, node) // node)
    return Fleet(num_replicas * gpus_per_replica, spares, nodes, node)


def bought_band(question: Question, gpus: BandedFigure, gpus_per_replica: int) -> BandedFigure:
    """Of what is bought, by the band of the GPUs that carry the load."""

    def bought(num_gpus: float) -> int:
        return fleet_of(question, round(num_gpus) // gpus_per_replica, gpus_per_replica).num_bought

    low, value, high = map(bought, (gpus.low, gpus.value, gpus.high))
    return replace(gpus, figure="num_gpus_rounded", value=value, low=low, high=high)


def num_spares(question: Question, num_replicas: int, gpus_per_replica: int) -> int:
    """As given, or as many as the target of availability asks for."""
    target = question.fleet.availability
    if target is None:
        return question.fleet.num_spares
    return spares_for(
        num_replicas, replica_availability(question, gpus_per_replica), target, MOST_SPARES
    )


def replica_availability(question: Question, gpus_per_replica: int) -> float:
    """Any of its GPUs takes a replica down."""
    return availability(question.fleet.mtbf_s / gpus_per_replica, question.fleet.mttr_s)


def fleet_availability(question: Question, num_replicas: int, gpus_per_replica: int) -> float:
    """The share of time in which enough replicas are up."""
    spares = num_spares(question, num_replicas, gpus_per_replica)
    each = replica_availability(question, gpus_per_replica)
    return k_of_n_availability(num_replicas, num_replicas + spares, each)
