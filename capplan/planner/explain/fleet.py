"""From replicas to what is bought."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain.figure import figure
from capplan.results.explanation import Figure, Symbol
from capplan.results.gpus import GpusPlan


def fleet_figures(plan: GpusPlan, each: int) -> Iterator[Figure]:
    """Spares and whole nodes; ``each`` GPUs are a replica."""
    assert plan.num_replicas is not None
    assert plan.num_nodes is not None
    assert plan.num_gpus_rounded is not None
    node, replicas, spares = plan.gpus_per_node, plan.num_replicas, plan.num_spare_replicas
    symbols = [
        Symbol("replicas", "that carry the load", replicas, ""),
        Symbol("spares", "beside them (--spares)", spares, ""),
        Symbol("node", "GPUs of a node", node, ""),
        Symbol("each", "GPUs a replica", each, ""),
    ]
    formula = "nodes = ceil((replicas + spares) / floor(node / each))"
    if each > node:
        formula = "nodes = (replicas + spares) × ceil(each / node)"
    yield figure(
        "nodes",
        plan.num_nodes,
        "",
        formula,
        symbols,
        why="Servers are bought and rented whole, and a replica stays within one.",
        picture="Replicas packed into boxes.",
        check=f"{plan.num_nodes * node - (replicas + spares) * each} of their GPUs are left.",
        source="docs/model.md 18",
    )
    yield figure(
        "GPUs to get",
        plan.num_gpus_rounded,
        "",
        "get = nodes × node",
        [
            Symbol("nodes", "whole", plan.num_nodes, ""),
            Symbol("node", "GPUs of a node", node, ""),
        ],
        why="This is what the bill is for.",
        picture="All boxes, full or not.",
        check=f"{plan.num_gpus_rounded} cover the {plan.num_gpus} that carry the load.",
        source="docs/model.md 18",
    )
