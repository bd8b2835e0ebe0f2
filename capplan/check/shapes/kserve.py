"""KServe: InferenceService and LLMInferenceService; serving runtimes are plain pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Autoscaler, Deployment, Shm, Stated
from capplan.check.documents import File
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import Flag, renamed_settings
from capplan.check.nodes import Node
from capplan.check.shapes.containers import (
    Surroundings,
    options_in,
    scope_of,
    server_deployments,
)
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.kubernetes import read_pods
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Value, literal

_ENGINE_WORDS = (
    ("sglang", "sglang"),
    ("tgi", "tgi"),
    ("trt", "tensorrt-llm"),
    ("nim", "nim"),
    ("vllm", "vllm"),
)
_WORKER_DEGREES = {
    "tensorParallelSize": "tensor-parallel-size",
    "pipelineParallelSize": "pipeline-parallel-size",
}
_DEGREES = {
    "tensor": "tensor-parallel-size",
    "pipeline": "pipeline-parallel-size",
    "data": "data-parallel-size",
    "dataLocal": "data-parallel-size-local",
}


def read_inference_service(file: File, root: Node) -> list[Deployment]:
    predictor = root.get("spec", "predictor")
    if root.word("kind") != "InferenceService" or predictor is None:
        return []
    scope = Scope(file.source, overrides=file.overrides)
    scaler = _scaler(root, predictor, scope)
    found: list[Deployment] = []
    model = predictor.get("model")
    if model is not None and model.kind == "mapping":
        found += _model(file, root, predictor, model)
    found += read_pods(file, predictor, shape="InferenceService")
    name = root.word("metadata", "name") or "InferenceService"
    return [
        replace(d, name=name, shape="InferenceService", autoscaler=d.autoscaler or scaler)
        for d in found
    ]


def _model(file: File, root: Node, predictor: Node, model: Node) -> Iterator[Deployment]:
    engine = _engine(root, model)
    if engine is None:
        return
    scope = scope_of(file, model, Surroundings("", ""))
    workers = predictor.get("workerSpec")
    around = Surroundings(
        shape="InferenceService",
        name="",
        pod=predictor,
        model=plain_value(model.get("storageUri") or model.get("storage", "path"), scope),
        replicas=stated(predictor.get("minReplicas"), scope),
        pods=stated(workers.get("pipelineParallelSize"), scope) if workers is not None else None,
        # The runtime, a file of its own, may add options.
        partial=model.get("image") is None and model.get("runtime") is None,
    )
    options = tuple(renamed_settings(workers, _WORKER_DEGREES, VLLM, scope))
    if model.get("command") is not None:
        yield from server_deployments(file, model, replace(around, flags=options))
        return
    yield from_parts(file, model, around, engine=engine, options=options, extra="args")


def _engine(root: Node, model: Node) -> str | None:
    """By format, runtime, image or the options that only one of them has."""
    words = [
        model.word("modelFormat", "name") or "",
        model.word("runtime") or "",
        model.word("image") or "",
        root.word("metadata", "annotations", "serving.kserve.io/runtime") or "",
    ]
    text = " ".join(words).lower()
    for word, engine in _ENGINE_WORDS:
        if word in text:
            return engine
    options = " ".join(
        item.value for item in (model.get("args") or model).items or () if item.kind == "scalar"
    )
    if "--tp" in options or "--mem-fraction" in options:
        return "sglang"
    if (
        "huggingface" in text
        or "--max-model-len" in options
        or "--tensor-parallel-size" in options
        or "--max_model_len" in options
    ):
        return "vllm"
    return None


def _scaler(root: Node, predictor: Node, scope: Scope) -> Autoscaler | None:
    metric = plain_value(predictor.get("scaleMetric"), scope)
    if metric is None:
        metric = plain_value(
            root.get("metadata", "annotations", "autoscaling.knative.dev/metric"), scope
        )
    if metric is None:
        return None
    return Autoscaler(
        metric,
        "KServe",
        (metric,),
        stated(predictor.get("minReplicas"), scope),
        stated(predictor.get("maxReplicas"), scope),
    )


def read_llm_inference_service(file: File, root: Node) -> list[Deployment]:
    spec = root.get("spec")
    if (
        root.word("kind") not in ("LLMInferenceService", "LLMInferenceServiceConfig")
        or spec is None
    ):
        return []
    scope = Scope(file.source, overrides=file.overrides)
    name = root.word("metadata", "name") or "LLMInferenceService"
    model = plain_value(spec.get("model", "uri") or spec.get("model", "name"), scope)
    found: list[Deployment] = []
    for part, role in ((spec, None), (spec.get("prefill"), "prefill")):
        if (part is not None and part.get("template") is not None) or part is spec:
            found += _part(file, part, name, role, model, "decode" if spec.get("prefill") else None)
    return found


def _part(
    file: File, part: Node, name: str, role: str | None, model: Value | None, other: str | None
) -> Iterator[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    template = part.get("template")
    degrees = part.get("parallelism")
    around = Surroundings(
        shape="LLMInferenceService",
        name=f"{name}/{role}" if role else name,
        pod=template,
        role=role or other,
        model=model,
        replicas=stated(part.get("replicas"), scope),
        flags=tuple(renamed_settings(degrees, _DEGREES, VLLM, scope)),
        pods=_nodes(part, degrees, scope),
    )
    held = template.get("containers") if template is not None else None
    containers = [c for c in (held.items or ()) if c.kind == "mapping"] if held is not None else []
    for container in containers:
        if container.word("name") not in (None, "main", "vllm", "kserve-container"):
            continue
        servers = (
            server_deployments(file, container, around)
            if container.get("command") or container.get("args")
            else []
        )
        if servers:
            yield from servers
        else:
            # The controller writes the command; options come in VLLM_ADDITIONAL_ARGS.
            yield _controlled(file, container, around)
    if not containers and model is not None:
        yield from_parts(file, part, replace(around, pod=None), engine="vllm")


def _controlled(file: File, container: Node, around: Surroundings) -> Deployment:
    scope = scope_of(file, container, around)
    options: list[Flag] = []
    for read in options_in(container, ("VLLM_ADDITIONAL_ARGS", "VLLM_EXTRA_ARGS"), VLLM, scope):
        options += read.flags
    found = from_parts(file, container, around, engine="vllm", options=options, extra="args")
    # The controller mounts memory at /dev/shm.
    return replace(found, shm=found.shm or Shm(None, around.model))


def _nodes(part: Node, degrees: Node | None, scope: Scope) -> Stated | None:
    """Pods of a replica: by data parallelism over nodes; unknown with a worker otherwise."""
    if part.get("worker") is None:
        return None
    total = stated(degrees.get("data"), scope) if degrees is not None else None
    local = stated(degrees.get("dataLocal"), scope) if degrees is not None else None
    if total is not None and local is not None and total.number and local.number:
        return replace(total, number=total.number / local.number)
    stages = stated(degrees.get("pipeline"), scope) if degrees is not None else None
    key = part.key("worker")
    if stages is not None:
        return stages
    return Stated(literal(part.source, "worker", key.offset if key else part.offset), None)
