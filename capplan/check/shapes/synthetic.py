"""A server whose command line a chart or an operator writes: from its settings."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.check.deployment import Deployment
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag, read_flags, value_of_meaning
from capplan.check.launch import version_of
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings, image_of, role_of, scope_of
from capplan.check.shapes.fields import plain_value
from capplan.check.shapes.model_hints import model_hints
from capplan.check.shapes.resources import gpu_hints, gpus_of, memory_limit_of, probes_of, shm_of
from capplan.check.shell import words_of
from capplan.check.values import Scope, Value, fill_kubernetes, literal


def from_parts(
    file: File,
    holder: Node,
    around: Surroundings,
    *,
    engine: str,
    options: Sequence[Flag] = (),
    extra: str = "",
    probes: Sequence[Node] = (),
    version: str | None = None,
) -> Deployment:
    """``options`` from settings, then the words at ``extra`` (a path of keys) as a command line."""
    scope = scope_of(file, holder, around)
    words = option_words(holder, extra, scope)
    table = TABLES.get(engine)
    read = read_flags(words, table) if table is not None else None
    flags = [*around.flags, *options, *(read.flags if read else ())]
    image = image_of(holder, scope) or around.image
    place = around.model or image or literal(file.source, around.name, holder.offset)
    given = value_of_meaning(flags, "model")
    gpus, resource = gpus_of(holder, around.pod or holder, file, scope)
    hints = model_hints(around.pod, holder, scope)
    if given is not None and around.model is not None:
        hints = (around.model, *hints)
    found = {kind: probe for node in (*probes, holder) for kind, probe in probes_of(node)}
    return Deployment(
        source=file.source,
        shape=around.shape,
        name=around.name,
        place=place,
        engine=engine,
        flags=tuple(flags),
        hidden=read.hidden if read else (),
        image=image,
        version=version or version_of(image),
        model=given or around.model,
        model_hints=hints,
        served_name=value_of_meaning(flags, "served_name"),
        gpus_per_pod=around.gpus or gpus,
        pods=around.pods,
        other_gpus=around.other_gpus,
        gpu_hints=(*around.hints, *gpu_hints(around.pod or holder, scope)),
        resource=resource,
        replicas=around.replicas,
        shm=shm_of(holder, around.pod or holder, scope),
        memory_limit=memory_limit_of(holder, scope),
        probes=found,
        environment=dict(scope.variables),
        role=around.role or role_of(flags, around),
        partial=around.partial or file.templated,
        kubernetes=around.kubernetes,
        ray=around.ray,
    )


def option_words(holder: Node, path: str, scope: Scope) -> list[Value]:
    """The words of a list of options; of a text, as a shell would split it."""
    node = holder.get(*path.split("/")) if path else None
    if node is None:
        return []
    if node.kind == "scalar" and not node.is_null:
        return words_of(fill_kubernetes(node.text(), scope), scope)
    return [value for value in (plain_value(item, scope) for item in node.items or ()) if value]
