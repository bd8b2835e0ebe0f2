"""NVIDIA Dynamo graph deployments: services (v1alpha1) and components (v1beta1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Deployment, Shm
from capplan.check.documents import File, inner_documents
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import Flag, mapping_flags
from capplan.check.nodes import Node
from capplan.check.quantities import size_of
from capplan.check.shapes.containers import Surroundings, server_deployments
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.kubernetes import pods_below
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Variable

_WORKERS = ("vllmworker", "prefillworker", "decodeworker", "worker", "backend", "decode", "prefill")


def read(file: File, root: Node) -> list[Deployment]:
    if root.word("kind") not in ("DynamoGraphDeployment", "DynamoComponentDeployment"):
        return []
    spec = root.get("spec")
    if spec is None:
        return []
    name = root.word("metadata", "name") or "graph"
    found: list[Deployment] = []
    for part_name, part in _parts(spec):
        found += _service(file, spec, part, f"{name}/{part_name}")
    return found


def _parts(spec: Node) -> Iterator[tuple[str, Node]]:
    services = spec.get("services")
    for name, (_, node) in (services.entries() if services is not None else {}).items():
        yield name, node
    for node in (spec.get("components") or spec).items or ():
        yield node.word("name") or "component", node
    if services is None and spec.get("components") is None:
        yield "component", spec


def _service(file: File, spec: Node, part: Node, name: str) -> list[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    gpus = stated(
        part.get("resources", "limits", "gpu") or part.get("resources", "requests", "gpu"), scope
    )
    role = next((r for r in ("prefill", "decode") if r in name.lower()), None)
    kind = part.word("subComponentType") or role
    shm = plain_value(part.get("sharedMemorySize") or part.get("sharedMemory", "size"), scope)
    around = Surroundings(
        shape="DynamoGraphDeployment",
        name=name,
        gpus=gpus,
        role=kind,
        replicas=stated(part.get("replicas"), scope),
        pods=stated(part.get("multinode", "nodeCount"), scope),
    )
    found: list[Deployment] = []
    for pod in pods_below(part):
        for container in pod.containers:
            inner = _graph_variables(part, spec)
            found += server_deployments(
                file, container, replace(around, pod=pod.node, extra_variables=inner)
            )
    if not found:
        found = list(_by_config(file, spec, part, around))
    memory = Shm(size_of(shm.word), shm) if shm is not None else None
    # The operator mounts 8 GiB at /dev/shm unless told otherwise.
    return [replace(d, shm=memory or d.shm or Shm(None, d.place)) for d in found]


def _graph_variables(part: Node, spec: Node) -> tuple[tuple[str, Variable], ...]:
    """Variables of the graph and the service hold for the container too."""
    found = []
    for holder in (spec, part):
        for entry in (holder.get("envs") or holder).items or ():
            name, value = entry.word("name"), entry.word("value")
            if name and value:
                line = entry.source.line_of(entry.offset)
                found.append((name, Variable(value, f"`{name}` = `{value[:80]}` (line {line})")))
    return tuple(found)


def _by_config(file: File, spec: Node, part: Node, around: Surroundings) -> Iterator[Deployment]:
    """`dynamo serve graphs.x:VllmWorker` reads its settings from DYN_DEPLOYMENT_CONFIG."""
    if not any(around.name.lower().endswith(f"/{word}") for word in _WORKERS):
        return
    for entry in (spec.get("envs") or spec).items or ():
        node = entry.get("value")
        if entry.word("name") != "DYN_DEPLOYMENT_CONFIG" or node is None:
            continue
        for root in inner_documents(node):
            scope = Scope(file.source, overrides=file.overrides)
            options: list[Flag] = []
            for section in ("Common", around.name.rpartition("/")[2]):
                held = root.get(section)
                if held is not None:
                    options += [f for f in mapping_flags(held, VLLM, scope) if f.name]
            pod = part.get("extraPodSpec") or part
            holder = pod.get("mainContainer") or part
            yield from_parts(file, holder, replace(around, pod=pod), engine="vllm", options=options)
