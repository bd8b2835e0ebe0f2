"""OCI AI blueprints: JSON with `recipe_*` keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Deployment, Probe, Shm
from capplan.check.documents import File
from capplan.check.launch import Launch, engine_of_image, find_launches
from capplan.check.nodes import Node
from capplan.check.quantities import number_of
from capplan.check.shapes.containers import Surroundings, read_env
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.resources import read_probe
from capplan.check.shapes.scripts import launched
from capplan.check.values import Scope
from capplan.units import MIB

_PROBE_FIELDS = (
    "initial_delay_seconds",
    "period_seconds",
    "failure_threshold",
    "timeout_seconds",
)


def read_blueprint(file: File, root: Node) -> list[Deployment]:
    """OCI AI blueprints: `recipe_*` keys in JSON."""
    arguments = root.get("recipe_container_command_args") or root.get("recipe_container_command")
    if arguments is None:
        return []
    scope = Scope(file.source, overrides=file.overrides)
    read_env(root.get("recipe_container_env"), file, scope)
    gpus = stated(root.get("recipe_nvidia_gpu_count") or root.get("recipe_amd_gpu_count"), scope)
    shape = plain_value(root.get("recipe_node_shape"), scope)
    image = plain_value(root.get("recipe_image_uri"), scope)
    words = [v for v in (plain_value(item, scope) for item in arguments.items or ()) if v]
    around = Surroundings(
        shape="OCI blueprint",
        name=root.word("deployment_name") or "recipe",
        gpus=gpus,
        image=image,
        hints=(shape,) if shape is not None else (),
        replicas=stated(root.get("recipe_replica_count"), scope),
    )
    found = find_launches(words, scope)
    engine = engine_of_image(image.chars) if image is not None else None
    if not found and engine is not None and words:
        found = [Launch(engine, tuple(words), (), scope, words[0])]
    probes = dict(_blueprint_probes(root))
    megabytes = number_of(root.word("recipe_shared_memory_volume_size_limit_in_mb"), 0.0)
    memory = plain_value(root.get("recipe_shared_memory_volume_size_limit_in_mb"), scope)
    shm = Shm(megabytes * MIB if megabytes else None, memory) if memory is not None else None
    return [replace(launched(file, launch, around), probes=probes, shm=shm) for launch in found]


def _blueprint_probes(root: Node) -> Iterator[tuple[str, Probe]]:
    for kind in ("liveness", "readiness", "startup"):
        name = f"recipe_{kind}_probe_params"
        node, key = root.get(name), root.key(name)
        if node is None or key is None:
            continue
        probe = read_probe(kind, key, node, _PROBE_FIELDS)
        if probe is not None:
            yield kind, probe
