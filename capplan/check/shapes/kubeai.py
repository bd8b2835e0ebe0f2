"""KubeAI: the Model kind, and the `catalog:` of its models chart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Autoscaler, Deployment, Shm, Stated, parse_number
from capplan.check.documents import File
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Value, literal

_ENGINES = {"vllm": "vllm", "sglang": "sglang"}
_COUNT = re.compile(r"(.*?):(\d+)")


def read_model(file: File, root: Node) -> list[Deployment]:
    if root.word("kind") != "Model" or not (root.word("apiVersion") or "").startswith(
        "kubeai.org/"
    ):
        return []
    spec = root.get("spec")
    name = root.word("metadata", "name") or "Model"
    return list(_model(file, spec, name, "KubeAI Model")) if spec is not None else []


def read_catalog(file: File, root: Node) -> list[Deployment]:
    catalog = root.get("catalog") or root.get("models", "catalog")
    if catalog is None or catalog.kind != "mapping":
        return []
    found: list[Deployment] = []
    for name, (_, spec) in catalog.entries().items():
        if spec.kind == "mapping" and spec.word("engine"):
            found += _model(file, spec, name, "KubeAI catalog")
    return found


def _model(file: File, spec: Node, name: str, shape: str) -> Iterator[Deployment]:
    engine = _ENGINES.get((spec.word("engine") or "").lower())
    if engine is None:
        return  # Ollama, Infinity and the like have no flags that we know
    scope = Scope(file.source, overrides=file.overrides)
    profile = plain_value(spec.get("resourceProfile"), scope)
    gpus, hints = _profile(profile)
    around = Surroundings(
        shape=shape,
        name=name,
        model=plain_value(spec.get("url"), scope),
        gpus=gpus,
        hints=hints,
        replicas=stated(spec.get("replicas") or spec.get("minReplicas"), scope),
        image=plain_value(spec.get("image"), scope),
    )
    deployment = from_parts(file, spec, around, engine=engine, extra="args")
    target = plain_value(spec.get("targetRequests"), scope)
    scaler = None
    if target is not None:
        scaler = Autoscaler(
            target,
            "KubeAI",
            (target,),
            stated(spec.get("minReplicas"), scope),
            stated(spec.get("maxReplicas"), scope),
        )
    # KubeAI mounts memory at /dev/shm by itself.
    yield replace(deployment, autoscaler=scaler, shm=Shm(None, profile))


def _profile(profile: Value | None) -> tuple[Stated | None, tuple[Value, ...]]:
    """`nvidia-gpu-h100:8` names a GPU and how many."""
    if profile is None or not profile.known:
        return None, ()
    match = _COUNT.fullmatch(profile.chars)
    if match is None:
        return None, (profile,)
    count = literal(profile.text.source, match[2], profile.text.at(match.start(2)))
    if match[1].startswith("cpu"):
        return Stated(count, 0.0), (profile.part(0, match.end(1)),)
    return Stated(count, parse_number(match[2])), (profile.part(0, match.end(1)),)
