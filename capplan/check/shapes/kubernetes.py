"""Anything that holds pods: Deployments, LeaderWorkerSets, serving runtimes, and kinds to come.

Wherever a mapping holds `containers:`, that is a pod; what stands above it says how many pods
make one replica and how many replicas there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capplan.check.deployment import Deployment, Stated
from capplan.check.documents import File
from capplan.check.nodes import Node, walk
from capplan.check.shapes.containers import Surroundings, server_deployments
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.resources import gpus_of
from capplan.check.values import MASK, Scope, Variable, literal

# A container that stands alone, under the name of what it is for.
_SINGLE = ("runner", "mainContainer", "container")
_NOT_PODS = ("initContainers", "ephemeralContainers")
# Sizes that controllers tell their pods by a variable.
_SIZE_VARIABLES = ("LWS_GROUP_SIZE", "RBG_LWP_GROUP_SIZE", "GROUP_SIZE", "NUM_NODES")


@dataclass(frozen=True)
class _Pod:
    node: Node
    above: tuple[Node, ...]
    containers: tuple[Node, ...]
    role_key: str


def read_pods(file: File, root: Node, *, shape: str | None = None) -> list[Deployment]:
    """Every server in the pods below a node."""
    kind = shape or root.word("kind") or "pod"
    name = root.word("metadata", "name") or root.word("metadata", "generateName") or kind
    name = kind if MASK in name else name
    found: list[Deployment] = []
    seen_groups: set[int] = set()
    for pod in pods_below(root):
        group = _group(pod)
        around = _surroundings(file, root, pod, kind, name, group)
        servers: list[Deployment] = []
        for container in pod.containers:
            servers += server_deployments(file, container, around)
        if servers and group is not None:
            # A worker runs the same server as its leader; it is the leader that counts.
            if id(group) in seen_groups:
                continue
            seen_groups.add(id(group))
        found += servers
    return found


def pods_below(root: Node) -> Iterator[_Pod]:
    for above, node in walk(root):
        if node.kind != "mapping":
            continue
        keys = node.entries()
        holders = [child for name, (_, child) in keys.items() if name == "containers"]
        items = [c for holder in holders for c in holder.items or () if c.kind == "mapping"]
        items += [
            child
            for name, (_, child) in keys.items()
            if name in _SINGLE
            and child.kind == "mapping"
            and (child.get("command") or child.get("args") or child.get("image"))
        ]
        if items:
            yield _Pod(node, above, tuple(items), _role_key(above, node))


def _role_key(above: Sequence[Node], node: Node) -> str:
    """The names on the way down to a pod, for what they say of its role."""
    words: list[str] = []
    chain = [*above, node]
    for parent, child in itertools.pairwise(chain):
        for name, (_, value) in parent.entries().items():
            if value is child:
                words.append(name)
        if parent.kind == "list" and child.word("name"):
            words.append(child.word("name") or "")
    return "/".join(words)


def _group(pod: _Pod) -> Node | None:
    """What holds a leader and its workers, where the pod is one of them."""
    for node in reversed([*pod.above, pod.node]):
        keys = node.entries()
        if "workerTemplate" in keys and (
            "leaderTemplate" in keys or "entryTemplate" in keys or "size" in keys
        ):
            return node
        if "leader" in keys and "worker" in keys:
            return node
        if "headGroupSpec" in keys:
            return node
    return None


def _surroundings(
    file: File, root: Node, pod: _Pod, kind: str, name: str, group: Node | None
) -> Surroundings:
    scope = Scope(file.source, overrides=file.overrides)
    pods, other = _pods(file, pod, group, scope)
    role = next((r for r in ("prefill", "decode") if r in pod.role_key.lower()), None)
    member = next(
        (n.word("name") for n in reversed(pod.above) if n.word("name") and n.get("replicas")), None
    )
    variables: list[tuple[str, Variable]] = []
    if pods is not None and pods.count is not None:
        size = str(pods.count)
        if other is not None and group is not None:
            size = str(_declared_size(group, scope) or pods.count)
        how = f"the group's size, {size}"
        variables = [(key, Variable(size, how)) for key in _SIZE_VARIABLES]
    variables += _kserve_variables(pod, scope)
    return Surroundings(
        shape=kind,
        name=f"{name}/{member}" if member and member != name else name,
        pod=pod.node,
        pods=pods,
        other_gpus=other,
        replicas=_replicas(pod, scope),
        role=role,
        extra_variables=tuple(variables),
        partial=_is_patch(root, pod),
        ray=group is not None and group.get("headGroupSpec") is not None and other is None,
    )


def _kserve_variables(pod: _Pod, scope: Scope) -> Iterator[tuple[str, Variable]]:
    """KServe tells a multi-node server its degrees, which stand with the workers."""
    worker = pod.node.get("workerSpec")
    for name, field in (
        ("TENSOR_PARALLEL_SIZE", "tensorParallelSize"),
        ("PIPELINE_PARALLEL_SIZE", "pipelineParallelSize"),
    ):
        value = plain_value(worker.get(field), scope) if worker is not None else None
        if value is not None:
            line = value.location.line
            yield name, Variable(value.chars, f"`{field}` = `{value.chars}` (line {line})")


def _is_patch(root: Node, pod: _Pod) -> bool:
    """A kustomize patch states changes only: no selector, no image."""
    if root.word("kind") not in (
        "Deployment",
        "StatefulSet",
        "InferenceService",
        "LeaderWorkerSet",
    ):
        return False
    return all(container.get("image") is None for container in pod.containers)


def _replicas(pod: _Pod, scope: Scope) -> Stated | None:
    for node in reversed([*pod.above, pod.node]):
        if "workerGroupSpecs" in node.entries():
            continue
        for key in ("replicas", "minReplicas"):
            held = node.get(key)
            if held is not None and held.kind == "scalar":
                return stated(held, scope)
    return None


def _declared_size(group: Node, scope: Scope) -> int | None:
    size = stated(group.get("size"), scope)
    return size.count if size else None


def _pods(
    file: File, pod: _Pod, group: Node | None, scope: Scope
) -> tuple[Stated | None, Stated | None]:
    """Pods like this one in a replica, and GPUs of the others."""
    if group is not None and group.get("headGroupSpec") is not None:
        return _one(group), _ray_workers(file, group, scope)
    if group is not None and group.get("entryTemplate") is not None:
        workers = stated(group.get("workerReplicas"), scope)
        return _more(workers), None
    if group is not None and group.get("leader") is not None:
        return _more(
            stated(group.get("worker", "size") or group.get("worker", "replicas"), scope)
        ), None
    if group is not None:
        size = stated(group.get("size"), scope) or _one(group)
        leader = _gpus_below(file, group.get("leaderTemplate"), scope)
        worker = _gpus_below(file, group.get("workerTemplate"), scope)
        if leader is not None and worker is not None and leader.number != worker.number:
            if size.count and worker.number is not None:
                return _one(group), replace(worker, number=(size.count - 1) * worker.number)
            return size, None
        return size, None
    for node in reversed([*pod.above, pod.node]):
        for key in ("podGroupSize", "size"):
            held = node.get(key)
            if (
                held is not None
                and held.kind == "scalar"
                and (key != "size" or node.get("template") or node.get("templateRef"))
            ):
                return stated(held, scope), None
        nodes = node.get("multinode", "nodeCount")
        if nodes is not None:
            return stated(nodes, scope), None
        held = node.get("workerSpec") or (node.get("worker") if node.get("template") else None)
        if held is not None and held.kind == "mapping":
            return _kserve_nodes(node, held, scope), None
    return None, None


def _kserve_nodes(node: Node, worker: Node, scope: Scope) -> Stated | None:
    """Nodes of a KServe multi-node server: head and workers, one a pipeline stage."""
    stages = worker.get("pipelineParallelSize") or node.get("parallelism", "pipeline")
    if stages is not None:
        return stated(stages, scope)
    key = node.key("worker") or node.key("workerSpec")
    # How many follow from the degrees and the GPUs of a node; not stated here.
    return Stated(literal(node.source, "worker", key.offset if key else 0), None)


def _ray_workers(file: File, group: Node, scope: Scope) -> Stated | None:
    """GPUs of all worker groups of a Ray cluster."""
    total = 0.0
    place: Stated | None = None
    for spec in (group.get("workerGroupSpecs") or group).items or ():
        replicas = stated(spec.get("replicas") or spec.get("minReplicas"), scope)
        hosts = stated(spec.get("numOfHosts"), scope)
        gpus = _gpus_below(file, spec.get("template"), scope)
        if gpus is None:
            continue
        place = gpus
        if gpus.number is None or (replicas is not None and replicas.number is None):
            return replace(gpus, number=None)
        num_hosts = hosts.number if hosts and hosts.number else 1
        total += gpus.number * (replicas.number if replicas and replicas.number else 1) * num_hosts
    return replace(place, number=total) if place is not None else None


def _gpus_below(file: File, node: Node | None, scope: Scope) -> Stated | None:
    if node is None:
        return None
    for pod in pods_below(node):
        for container in pod.containers:
            gpus, _ = gpus_of(container, pod.node, file, scope)
            if gpus is not None:
                return gpus
    return None


def _one(node: Node) -> Stated:
    return Stated(literal(node.source, "1", node.offset), 1.0)


def _more(workers: Stated | None) -> Stated | None:
    if workers is None:
        return None
    return replace(workers, number=None if workers.number is None else workers.number + 1)
