"""SkyPilot: `resources.accelerators` and the script in `run:`."""

from __future__ import annotations

import re

from capplan.check.deployment import Deployment, Stated, parse_number
from capplan.check.documents import File
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings, distinct, read_env
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.scripts import script_servers
from capplan.check.values import Scope, Value, Variable, fill_templates, literal, value_of

_ACCELERATOR = re.compile(r"\s*([\w.-]+)\s*(?::\s*([\d.]+))?\s*")


def read(file: File, root: Node) -> list[Deployment]:
    run = root.get("run")
    if run is None or run.kind != "scalar" or root.get("apiVersion") is not None:
        return []
    scope = Scope(file.source, overrides=file.overrides)
    for key in ("envs", "secrets"):
        read_env(root.get(key), file, scope)
    gpus, hints = accelerators(root.get("resources", "accelerators"), scope)
    nodes = stated(root.get("num_nodes"), scope)
    if gpus is not None and gpus.count is not None:
        _tell(scope, "SKYPILOT_NUM_GPUS_PER_NODE", str(gpus.count))
    _tell(scope, "SKYPILOT_NUM_NODES", str(nodes.count) if nodes and nodes.count else "1")
    image = plain_value(root.get("resources", "image_id"), scope)
    replicas = root.get("service", "replicas") or root.get(
        "service", "replica_policy", "min_replicas"
    )
    around = Surroundings(
        shape="SkyPilot",
        name=root.word("name") or "task",
        gpus=gpus,
        pods=nodes,
        hints=hints,
        image=image,
        replicas=stated(replicas, scope),
        kubernetes=False,
    )
    script = value_of(fill_templates(run.text(), scope), scope)
    return distinct(script_servers(file, script, scope, around, holder=root))


def _tell(scope: Scope, name: str, text: str) -> None:
    scope.variables.setdefault(name, Variable(text, f"`{name}` = {text}, by SkyPilot"))


def accelerators(node: Node | None, scope: Scope) -> tuple[Stated | None, tuple[Value, ...]]:
    """`H100:8`, `{A100-80GB: 8}`, `{A100-80GB:8}`, or a list to choose from."""
    if node is None:
        return None, ()
    found: list[tuple[Value, Value | None]] = []
    if node.kind == "mapping":
        for name, (key, child) in node.entries().items():
            count = plain_value(child, scope)
            found.append(
                _split(literal(key.source, name, key.offset))
                if count is None
                else (literal(key.source, name, key.offset), count)
            )
    for item in node.items or ([node] if node.kind == "scalar" else []):
        value = plain_value(item, scope)
        if value is not None:
            found.append(_split(value))
    if not found:
        return None, ()
    hints = tuple(name for name, _ in found)
    counts = {count.chars if count is not None else "1" for _, count in found}
    first_name, first = found[0]
    if len(counts) > 1:
        return Stated(first or first_name, None), hints
    if first is None:
        return Stated(first_name, 1.0), hints
    return Stated(first, parse_number(first.word)), hints


def _split(value: Value) -> tuple[Value, Value | None]:
    match = _ACCELERATOR.fullmatch(value.chars)
    if match is None or match[2] is None:
        return value, None
    name = value.part(match.start(1), match.end(1))
    if len(set(value.text.offsets)) > 1:
        return name, value.part(match.start(2), match.end(2))
    return name, literal(value.text.source, match[2], value.offset)
