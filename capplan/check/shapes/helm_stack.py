"""vLLM production-stack: Helm values (`servingEngineSpec.modelSpec`) and the VLLMRuntime kind."""

from __future__ import annotations

from dataclasses import replace

from capplan.check.deployment import Deployment, Shm, Stated
from capplan.check.documents import File
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import Flag, mapping_flags
from capplan.check.nodes import Node
from capplan.check.quantities import size_of
from capplan.check.shapes.autoscalers import section
from capplan.check.shapes.containers import (
    Surroundings,
    read_env,
    scope_of,
)
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.resources import gpu_hints
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Value, literal

# Settings of the chart that are no options of the engine.
_NOT_OPTIONS = ("extraArgs", "v0", "v1", "port", "env")


def read_values(file: File, root: Node) -> list[Deployment]:
    found: list[Deployment] = []
    spec = root.get("servingEngineSpec")
    if spec is None or spec.kind != "mapping":
        return []
    for entry in (spec.get("modelSpec") or spec).items or ():
        if entry.kind == "mapping":
            found += _model(file, spec, entry)
    return found


def _model(file: File, spec: Node, entry: Node) -> list[Deployment]:
    scope = scope_of(file, entry, Surroundings("", ""))
    name = entry.word("name") or "modelSpec"
    model = plain_value(entry.get("modelURL"), scope)
    image = _image(entry, scope)
    gpus = stated(entry.get("requestGPU"), scope)
    pods, other = _ray(entry, scope)
    shm = plain_value(entry.get("shmSize"), scope)
    around = Surroundings(
        shape="production-stack values",
        name=name,
        pods=pods,
        other_gpus=other,
        model=model,
        replicas=None if other is not None else stated(entry.get("replicaCount"), scope),
        gpus=gpus,
        hints=gpu_hints(spec, scope),
        image=image,
        ray=other is not None,
    )
    deployment = from_parts(
        file,
        entry,
        around,
        engine="vllm",
        options=_options(entry, scope),
        extra="vllmConfig/extraArgs",
        probes=(spec, entry),
    )
    memory = plain_value(entry.get("limitMemory") or entry.get("requestMemory"), scope)
    # The chart mounts 20 GiB at /dev/shm where tensor parallelism is set, and lets it be named.
    own = Shm(size_of(shm.word), shm) if shm is not None else Shm(None, model)
    return [
        replace(
            deployment,
            shm=own,
            autoscaler=section(entry, scope),
            memory_limit=Stated(memory, size_of(memory.word)) if memory else None,
        )
    ]


def _image(entry: Node, scope: Scope) -> Value | None:
    repository, tag = (
        plain_value(entry.get("repository"), scope),
        plain_value(entry.get("tag"), scope),
    )
    if repository is None or tag is None:
        return repository
    return literal(repository.text.source, f"{repository.chars}:{tag.chars}", repository.offset)


def _ray(entry: Node, scope: Scope) -> tuple[Stated | None, Stated | None]:
    """With `raySpec`, the head has GPUs of its own and the replicas are its workers."""
    if entry.word("raySpec", "enabled") != "true":
        return None, None
    head = stated(entry.get("raySpec", "headNode", "requestGPU"), scope)
    return stated(entry.get("replicaCount"), scope), head


def _options(entry: Node, scope: Scope) -> list[Flag]:
    config = entry.get("vllmConfig")
    flags = mapping_flags(config, VLLM, scope) if config is not None else iter(())
    return [flag for flag in flags if flag.written not in _NOT_OPTIONS]


def read_runtime(file: File, root: Node) -> list[Deployment]:
    """kind VLLMRuntime: model, vllmConfig and deploymentConfig apart."""
    spec = root.get("spec")
    if root.word("kind") != "VLLMRuntime" or spec is None:
        return []
    scope = Scope(file.source, overrides=file.overrides)
    read_env(spec.get("vllmConfig", "env"), file, scope)
    model = spec.get("model")
    options = list(mapping_flags(model, VLLM, scope)) if model is not None else []
    options = [
        flag for flag in options if flag.written not in ("modelURL", "hfTokenSecret", "hfTokenName")
    ]
    options += _options(spec, scope)
    resources = spec.get("deploymentConfig", "resources")
    around = Surroundings(
        shape="VLLMRuntime",
        name=root.word("metadata", "name") or "VLLMRuntime",
        replicas=stated(spec.get("deploymentConfig", "replicas"), scope),
        model=plain_value(spec.get("model", "modelURL"), scope),
        gpus=stated(resources.get("gpu"), scope) if resources is not None else None,
        image=plain_value(spec.get("deploymentConfig", "image", "name"), scope),
        hints=gpu_hints(spec.get("deploymentConfig") or spec, scope),
    )
    holder = spec.get("vllmConfig") or spec
    deployment = from_parts(file, holder, around, engine="vllm", options=options, extra="extraArgs")
    return [replace(deployment, shm=Shm(None, around.model), autoscaler=section(spec, scope))]
