"""Kaito: Workspace, InferenceSet and RAGEngine, with the ConfigMap of inference settings."""

from __future__ import annotations

from dataclasses import replace

from capplan.check.deployment import Deployment, Shm
from capplan.check.documents import File, inner_documents
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import Flag, mapping_flags
from capplan.check.gpu_names import accelerators
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.kubernetes import read_pods
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Value


def read(file: File, root: Node) -> list[Deployment]:
    if not (root.word("apiVersion") or "").startswith("kaito.sh/"):
        return []
    # A Workspace has its fields at the top, an InferenceSet in the spec of its template.
    holder = root.get("spec", "template") or root
    resource = holder.get("resource") or root.get("spec", "resource") or root.get("spec", "compute")
    inference = (
        holder.get("inference") or root.get("inference") or root.get("spec", "inferenceService")
    )
    if inference is None:
        return []
    if inference.get("template") is not None:
        return [_placed(d, resource, file) for d in read_pods(file, root)]
    scope = Scope(file.source, overrides=file.overrides)
    preset = inference.get("preset")
    model = plain_value(
        preset.get("name") if preset is not None else inference.get("modelName"), scope
    )
    if model is None:
        return []
    around = Surroundings(
        shape=f"Kaito {root.word('kind') or 'Workspace'}",
        name=root.word("metadata", "name") or "workspace",
        model=model,
        pods=stated(resource.get("count"), scope) if resource is not None else None,
        replicas=stated(root.get("spec", "replicas"), scope),
        hints=_instance(resource, scope),
        # Kaito gives every pod all GPUs of its machine.
    )
    options = _settings(file, inference, scope)
    found = from_parts(file, inference, around, engine="vllm", options=options)
    # The operator splits over all GPUs of a machine and over machines; how, it decides.
    machine = accelerators(around.hints[0].word or "") if around.hints else None
    alone = machine is not None and machine.per_node == 1 and around.pods is None
    split = not alone and found.flag("tp") is None
    return [replace(found, shm=Shm(None, model), partial=split)]


def _settings(file: File, inference: Node, scope: Scope) -> list[Flag]:
    data = file.config_maps.get(inference.word("config") or "")
    text = data.get("inference_config.yaml") if data is not None else None
    flags: list[Flag] = []
    for root in inner_documents(text) if text is not None else ():
        vllm = root.get("vllm")
        if vllm is not None:
            flags += mapping_flags(vllm, VLLM, scope)
    return flags


def _instance(resource: Node | None, scope: Scope) -> tuple[Value, ...]:
    if resource is None:
        return ()
    names = [
        resource.get("instanceType"),
        *((resource.get("preferredNodes") or resource).items or ()),
    ]
    return tuple(value for value in (plain_value(node, scope) for node in names) if value)


def _placed(deployment: Deployment, resource: Node | None, file: File) -> Deployment:
    scope = Scope(file.source, overrides=file.overrides)
    hints = (*deployment.gpu_hints, *_instance(resource, scope))
    pods = stated(resource.get("count"), scope) if resource is not None else None
    return replace(deployment, gpu_hints=hints, pods=deployment.pods or pods)
