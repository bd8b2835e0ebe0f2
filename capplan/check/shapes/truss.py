"""Truss configs: `docker_server.start_command`, or settings under `trt_llm`."""

from __future__ import annotations

from dataclasses import replace

from capplan.check.deployment import Deployment, Shm
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings, distinct, read_env
from capplan.check.shapes.fields import plain_value
from capplan.check.shapes.mounted import flattened
from capplan.check.shapes.scripts import script_servers
from capplan.check.shapes.skypilot import accelerators
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, value_of


def read_truss(file: File, root: Node) -> list[Deployment]:
    """`docker_server.start_command`, or settings under `trt_llm`."""
    scope = Scope(file.source, overrides=file.overrides)
    # What SkyPilot calls `accelerators:`.
    gpu = root.get("resources", "accelerator") or root.get("resources", "accelerators")
    gpus, hints = accelerators(gpu, scope)
    image = plain_value(root.get("base_image", "image"), scope)
    cache = [
        plain_value(item.get("repo_id"), scope)
        for item in (root.get("model_cache") or root).items or ()
    ]
    around = Surroundings(
        shape="Truss",
        name=root.word("model_name") or "truss",
        gpus=gpus,
        hints=hints,
        image=image,
        kubernetes=False,
        model=plain_value(root.get("model_metadata", "repo_id"), scope),
    )
    start = root.get("docker_server", "start_command")
    if start is not None and start.kind == "scalar":
        read_env(root.get("environment_variables"), file, scope)
        script = value_of(start.text(), scope)
        found = script_servers(file, script, scope, around)
        kept = tuple(value for value in cache if value is not None)
        return distinct([replace(d, model_hints=(*d.model_hints, *kept)) for d in found])
    runtime = root.get("trt_llm", "runtime")
    build = root.get("trt_llm", "build")
    if runtime is None and build is None:
        return []
    table = TABLES["tensorrt-llm"]
    options: list[Flag] = []
    for held in (build, runtime):
        if held is not None:
            options += flattened(held, table, scope)
            patch = held.get("patch_kwargs")
            if patch is not None:
                options += [f for f in flattened(patch, table, scope) if f.meaning]
    model = plain_value((build or root).get("checkpoint_repository", "repo"), scope)
    server = from_parts(
        file,
        root,
        replace(around, model=model or around.model),
        engine="tensorrt-llm",
        options=options,
    )
    return [replace(server, shm=Shm(None, model))]
