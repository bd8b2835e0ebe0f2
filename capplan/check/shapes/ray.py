"""Ray Serve LLM: `llm_configs` in a serve config, in a RayService or a ConfigMap; and RayLLM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Autoscaler, Deployment, Shm, Stated
from capplan.check.documents import File, inner_documents
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import mapping_flags
from capplan.check.nodes import Node, walk
from capplan.check.shapes.containers import Surroundings, image_of
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.kubernetes import pods_below
from capplan.check.shapes.resources import gpu_hints, gpus_of, shm_of
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Value, literal


def read(file: File, root: Node) -> list[Deployment]:
    """All LLM configurations in a document, also in texts inside it."""
    found = [d for node in _configs(root) for d in _config(file, node, root)]
    serve = root.get("spec", "serveConfigV2")
    if serve is not None and serve.kind == "scalar":
        for inner in inner_documents(serve):
            found += [d for node in _configs(inner) for d in _config(file, node, root)]
    return found


def _configs(root: Node) -> Iterator[Node]:
    for _, node in walk(root):
        if node.kind == "mapping" and (
            node.get("model_loading_config") is not None
            or (node.get("engine_config") is not None and node.get("deployment_config") is not None)
        ):
            yield node


def _config(file: File, node: Node, root: Node) -> Iterator[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    engine = node.get("engine_config")
    loading = node.get("model_loading_config")
    kwargs = node.get("engine_kwargs") or (
        engine.get("engine_kwargs") if engine is not None else None
    )
    if loading is not None:
        source = loading.get("model_source") or loading.get("model_id")
        model = (
            plain_value(source, scope) if source is not None and source.kind == "scalar" else None
        )
        model = (
            model
            or plain_value(loading.get("model_source", "bucket_uri"), scope)
            or plain_value(loading.get("model_id"), scope)
        )
        name = loading.word("model_id") or "llm_config"
    elif engine is not None:
        if engine.word("type") not in (None, "VLLMEngine"):
            return
        model = plain_value(engine.get("hf_model_id") or engine.get("model_id"), scope)
        name = engine.word("model_id") or "engine_config"
    else:
        return
    image, hints, shm, gpus = _cluster(file, root, scope)
    accelerator = plain_value(node.get("accelerator_type"), scope)
    deployment_config = node.get("deployment_config")
    around = Surroundings(
        shape="Ray Serve LLM",
        name=name,
        model=model,
        image=image,
        ray=True,
        replicas=_replicas(deployment_config, scope),
        hints=tuple(v for v in (accelerator, *_resources(node), *hints) if v),
        gpus=_gpus(node, scope) or gpus,
    )
    options = list(mapping_flags(kwargs, VLLM, scope)) if kwargs is not None else []
    found = from_parts(file, node, around, engine="vllm", options=options)
    yield replace(
        found,
        shm=shm or Shm(None, model),
        autoscaler=_autoscaler(deployment_config, scope),
        kubernetes=root.word("kind") is not None,
    )


def _gpus(node: Node, scope: Scope) -> Stated | None:
    """Workers times GPUs of each (RayLLM); the newer form asks for what the degrees need."""
    workers = stated(node.get("scaling_config", "num_workers"), scope)
    each = stated(node.get("scaling_config", "num_gpus_per_worker"), scope)
    if workers is None or workers.number is None or each is None or each.number is None:
        return None
    return replace(workers, number=workers.number * each.number)


def _resources(node: Node) -> Iterator[Value]:
    """`accelerator_type_l4: 0.01` names a GPU by a resource."""
    for path in (
        ("scaling_config", "resources_per_worker"),
        ("deployment_config", "ray_actor_options", "resources"),
    ):
        held = node.get(*path)
        for name, (key, _) in (held.entries() if held is not None else {}).items():
            if "accelerator_type" in name:
                yield literal(
                    key.source, name.partition("accelerator_type")[2].lstrip(":_"), key.offset
                )


def _replicas(config: Node | None, scope: Scope) -> Stated | None:
    if config is None:
        return None
    return stated(
        config.get("num_replicas") or config.get("autoscaling_config", "min_replicas"), scope
    )


def _autoscaler(config: Node | None, scope: Scope) -> Autoscaler | None:
    node = config.get("autoscaling_config") if config is not None else None
    key = config.key("autoscaling_config") if config is not None else None
    if node is None or key is None or node.kind != "mapping":
        return None
    names = ("target_ongoing_requests", "target_num_ongoing_requests_per_replica")
    metrics = tuple(
        literal(node.source, name, k.offset) for name in names if (k := node.key(name)) is not None
    )
    place = literal(key.source, key.value, key.offset)
    return Autoscaler(
        place,
        "Ray Serve",
        metrics,
        stated(node.get("min_replicas"), scope),
        stated(node.get("max_replicas"), scope),
    )


def _cluster(
    file: File, root: Node, scope: Scope
) -> tuple[Value | None, tuple[Value, ...], Shm | None, Stated | None]:
    """Image, node labels, shared memory and GPUs of the workers that have some."""
    image: Value | None = None
    for pod in pods_below(root):
        for container in pod.containers:
            gpus, _ = gpus_of(container, pod.node, file, scope)
            image = image_of(container, scope) or image
            if gpus is not None:
                shm = shm_of(container, pod.node, scope)
                return image, gpu_hints(pod.node, scope), shm, gpus
    return image, (), None, None
