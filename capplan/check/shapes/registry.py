"""Which readers look at which document; a document inside a document is looked at too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from capplan.check.deployment import Autoscaler, Deployment
from capplan.check.documents import File, inner_documents, may_deploy
from capplan.check.nodes import Node, walk
from capplan.check.shapes import (
    blueprint,
    charts,
    compose,
    dynamo,
    helm_stack,
    kaito,
    kserve,
    kubeai,
    llmd,
    plan,
    ray,
    scripts,
    skypilot,
    truss,
    vllm_config,
)
from capplan.check.shapes.autoscalers import by_target
from capplan.check.shapes.containers import Surroundings, distinct
from capplan.check.shapes.kubernetes import read_pods
from capplan.check.values import Scope, fill_templates, value_of

Reader = Callable[[File, Node], list[Deployment]]
# The first that finds something has the document.
_KINDS: tuple[Reader, ...] = (
    helm_stack.read_runtime,
    kubeai.read_model,
    kaito.read,
    kserve.read_inference_service,
    kserve.read_llm_inference_service,
    dynamo.read,
)
_VALUES: tuple[Reader, ...] = (
    plan.read,
    helm_stack.read_values,
    llmd.read_values,
    llmd.read_scenario,
    kubeai.read_catalog,
    compose.read,
    skypilot.read,
    truss.read_truss,
    blueprint.read_blueprint,
    vllm_config.read,
    charts.read,
)
MAX_DEPTH = 3


def read_deployments(file: File) -> list[Deployment]:
    """All servers that a file deploys, in the order in which they stand."""
    if file.is_script:
        return scripts.read(file)
    found: list[Deployment] = []
    for root in file.documents:
        found += read_document(file, root)
    return with_autoscalers(_without_mounted(found), by_target(file))


def _without_mounted(found: list[Deployment]) -> list[Deployment]:
    """A settings file that a server here mounts is no second server."""
    used = {f.location for d in found if d.shape != vllm_config.SHAPE for f in d.flags}
    return [
        d
        for d in found
        if d.shape != vllm_config.SHAPE or not any(f.location in used for f in d.flags)
    ]


def with_autoscalers(found: list[Deployment], scalers: dict[str, Autoscaler]) -> list[Deployment]:
    """Deployments with what scales them, where it names them."""
    if not scalers:
        return found
    return [
        replace(
            d,
            autoscaler=d.autoscaler or scalers.get(d.name) or scalers.get(d.name.partition("/")[0]),
        )
        for d in found
    ]


def read_document(file: File, root: Node, depth: int = 0) -> list[Deployment]:
    if root.kind == "list":
        return [
            d
            for item in root.items or ()
            if item.kind == "mapping"
            for d in read_document(file, item, depth)
        ]
    if root.kind != "mapping" or depth > MAX_DEPTH:
        return []
    found = ray.read(file, root) or _ray_job(file, root)
    if root.get("apiVersion") is not None or root.get("kind") is not None:
        for reader in _KINDS:
            found = found or reader(file, root)
        found = found or read_pods(file, root)
    else:
        for reader in _VALUES:
            found = found or reader(file, root)
        # Rendered pods or a chart with whole containers in its values.
        found = found or read_pods(file, root, shape="values")
    return found or distinct(list(_inside(file, root, depth)))


def _inside(file: File, root: Node, depth: int) -> Iterator[Deployment]:
    """Values of a HelmRelease or an Application, and documents in texts."""
    for path in (
        ("spec", "values"),
        ("spec", "source", "helm", "valuesObject"),
        ("spec", "chart", "values"),
    ):
        node = root.get(*path)
        if node is not None and node.kind == "mapping":
            yield from read_document(file, node, depth + 1)
    for source in (root.get("spec", "sources") or root).items or ():
        node = source.get("helm", "valuesObject")
        if node is not None:
            yield from read_document(file, node, depth + 1)
    for chart in (root.get("helmCharts") or root).items or ():
        node = chart.get("valuesInline")
        if node is not None:
            yield from read_document(file, node, depth + 1)
    if root.get("apiVersion") is None:
        # An umbrella chart: the values of its parts, by name.
        for _, (_, child) in root.entries().items():
            if child.kind == "mapping" and depth < 2:
                yield from _umbrella(file, child)
    yield from _texts(file, root, depth)


def _umbrella(file: File, child: Node) -> Iterator[Deployment]:
    for reader in _VALUES[:5]:
        found = reader(file, child)
        if found:
            yield from found
            return


def _texts(file: File, root: Node, depth: int) -> Iterator[Deployment]:
    """YAML inside YAML (`values: |`), and scripts in a ConfigMap."""
    for node in unique(node for _, node in walk(root)):
        for name, (_, child) in node.entries().items():
            if child.kind != "scalar" or "\n" not in child.value or not may_deploy(child.value):
                continue
            if name.endswith(".sh") or child.value.startswith("#!"):
                yield from _script(file, child, name)
                continue
            for inner in inner_documents(child):
                yield from read_document(file, inner, depth + 1)
        for item in node.items or ():
            if item.kind == "scalar" and "\n" in item.value and may_deploy(item.value):
                for inner in inner_documents(item):
                    yield from read_document(file, inner, depth + 1)


def _ray_job(file: File, root: Node) -> list[Deployment]:
    """A RayJob's command line; the GPUs are those of its cluster."""
    entry = root.get("spec", "entrypoint")
    if root.word("kind") != "RayJob" or entry is None or entry.kind != "scalar":
        return []
    scope = Scope(file.source, overrides=file.overrides)
    around = Surroundings(shape="RayJob", name=root.word("metadata", "name") or "job", ray=True)
    script = value_of(fill_templates(entry.text(), scope), scope)
    return scripts.script_servers(file, script, scope, around)


def unique(nodes: Iterator[Node]) -> Iterator[Node]:
    """Each node once, in order."""
    return iter({id(node): node for node in nodes}.values())


def _script(file: File, node: Node, name: str) -> Iterator[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    around = Surroundings(shape="script in a ConfigMap", name=name)
    script = value_of(fill_templates(node.text(), scope), scope)
    yield from scripts.script_servers(file, script, scope, around)
