"""llm-d: values of the modelservice chart (`decode`, `prefill`), and benchmark scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Deployment, Stated
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag, dashed, one_setting
from capplan.check.launch import engine_of_image
from capplan.check.nodes import Node
from capplan.check.shapes.containers import (
    Surroundings,
    distinct,
    image_of,
    read_env,
    server_deployments,
)
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.scripts import script_servers
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, Variable, fill_kubernetes, value_of

_DEGREES = {
    "tensor": "tensor-parallel-size",
    "pipeline": "pipeline-parallel-size",
    "data": "data-parallel-size",
}


def read_values(file: File, root: Node) -> list[Deployment]:
    """`modelArtifacts` beside `decode` and `prefill`."""
    if root.get("modelArtifacts") is None:
        return []
    found: list[Deployment] = []
    for role in ("decode", "prefill"):
        part = root.get(role)
        if part is None or part.word("create") == "false":
            continue
        for container in (part.get("containers") or part).items or ():
            found += _server(file, root, part, container, role)
    return found


def _server(file: File, root: Node, part: Node, container: Node, role: str) -> list[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    named = plain_value(
        root.get("modelArtifacts", "uri") or root.get("modelArtifacts", "name"), scope
    )
    degrees = part.get("parallelism")
    tensor = stated(degrees.get("tensor"), scope) if degrees is not None else None
    local = stated(degrees.get("dataLocal"), scope) if degrees is not None else None
    gpus = _times(tensor, local)
    image = image_of(container, scope)
    engine = (engine_of_image(image.chars) if image is not None else None) or "vllm"
    around = Surroundings(
        shape="llm-d values",
        name=role,
        pod=part,
        role=role,
        model=named,
        gpus=gpus,
        replicas=stated(part.get("replicas"), scope),
        fill_model=True,
        pods=stated(degrees.get("workers"), scope)
        if degrees is not None and root.word("multinode") == "true"
        else None,
    )
    if container.word("modelCommand") in ("vllmServe", "imageDefault"):
        # The chart writes the command; the degrees become options.
        options = list(_degree_flags(degrees, engine, scope))
        return [
            from_parts(
                file,
                container,
                replace(around, pod=part),
                engine=engine,
                options=options,
                extra="args",
            )
        ]
    return server_deployments(
        file, container, replace(around, flags=tuple(_degree_flags(degrees, engine, scope)))
    )


def _degree_flags(degrees: Node | None, engine: str, scope: Scope) -> Iterator[Flag]:
    if degrees is None or engine not in TABLES:
        return
    for name, option in _DEGREES.items():
        key, child = degrees.key(name), degrees.get(name)
        known = option in TABLES[engine].names()
        if key is not None and child is not None and known and not _is_none(child):
            yield one_setting(option, key, child, TABLES[engine], scope)


def _times(one: Stated | None, other: Stated | None) -> Stated | None:
    if one is None or other is None or other.number is None or one.number is None:
        return one
    return replace(one, number=one.number * other.number)


def read_scenario(file: File, root: Node) -> list[Deployment]:
    """llm-d-benchmark: `scenario:` with model, prefill and decode; variables are its own."""
    found: list[Deployment] = []
    for entry in (root.get("scenario") or root).items or ():
        if entry.kind != "mapping":
            continue
        for part, role in _roles(entry):
            found += _scenario_server(file, entry, part, role)
    return found


def _roles(entry: Node) -> Iterator[tuple[Node, str]]:
    for holder in (entry, entry.get("modelservice"), entry.get("common"), entry.get("standalone")):
        for role in ("prefill", "decode"):
            part = holder.get(role) if holder is not None else None
            if (
                part is not None
                and part.get("vllm") is not None
                and part.word("enabled") != "false"
            ):
                yield part, role


def _scenario_server(file: File, entry: Node, part: Node, role: str) -> list[Deployment]:
    scope = Scope(file.source, overrides=file.overrides)
    model = entry.get("common", "model") or entry.get("model")
    degrees = part.get("parallelism")
    tensor = stated(degrees.get("tensor"), scope) if degrees is not None else None
    local = stated(degrees.get("dataLocal"), scope) if degrees is not None else None
    workers = stated(degrees.get("workers"), scope) if degrees is not None else None
    variables = list(_scenario_variables(model, degrees, scope))
    for name, variable in variables:
        scope.variables[name] = variable
    read_env(part.get("extraEnvVars"), file, scope)
    command = part.get("vllm", "customCommand")
    around = Surroundings(
        shape="llm-d scenario",
        name=f"{entry.word('name') or 'scenario'}/{role}",
        pod=part,
        role=role,
        gpus=_times(tensor, local),
        pods=workers,
        replicas=stated(part.get("replicas"), scope),
        model=plain_value(
            (model or part).get("huggingfaceId") or (model or part).get("name"), scope
        ),
        extra_variables=tuple(scope.variables.items()),
        flags=tuple(_model_flags(model, degrees, scope)),
    )
    if command is None or command.kind != "scalar":
        return [from_parts(file, part, around, engine="vllm", extra="vllm/args")]
    script = value_of(fill_kubernetes(command.text(), scope), scope)
    return distinct(script_servers(file, script, scope, around, holder=part))


def _scenario_variables(
    model: Node | None, degrees: Node | None, scope: Scope
) -> Iterator[tuple[str, Variable]]:
    names = {
        "VLLM_MAX_MODEL_LEN": "maxModelLen",
        "VLLM_BLOCK_SIZE": "blockSize",
        "VLLM_ACCELERATOR_MEM_UTIL": "gpuMemoryUtilization",
        "MODEL_PATH": "path",
        "MODEL_NAME": "name",
        "VLLM_MAX_NUM_SEQ": "maxNumSeq",
        "VLLM_MAX_NUM_BATCHED_TOKENS": "maxNumBatchedTokens",
    }
    for variable, field in names.items():
        node = model.get(field) if model is not None else None
        value = plain_value(node, scope)
        if value is not None and node is not None:
            line = node.source.line_of(node.offset)
            yield variable, Variable(value.chars, f"`{variable}` = `{value.chars}` (line {line})")
    for variable, field in (
        ("TP_SIZE", "tensor"),
        ("DP_SIZE_LOCAL", "dataLocal"),
        ("LWS_GROUP_SIZE", "workers"),
    ):
        node = degrees.get(field) if degrees is not None else None
        value = plain_value(node, scope)
        if value is not None and node is not None:
            line = node.source.line_of(node.offset)
            yield variable, Variable(value.chars, f"`{variable}` = `{value.chars}` (line {line})")


def _model_flags(model: Node | None, degrees: Node | None, scope: Scope) -> Iterator[Flag]:
    vllm = TABLES["vllm"]
    if model is not None:
        for field in ("maxModelLen", "blockSize", "gpuMemoryUtilization"):
            key, child = model.key(field), model.get(field)
            if key is not None and child is not None:
                name = vllm.find(dashed(field))[0]
                if name is not None and not _is_none(child):
                    yield one_setting(name, key, child, vllm, scope)
    for name, option in (("tensor", "tensor-parallel-size"),):
        key = degrees.key(name) if degrees is not None else None
        child = degrees.get(name) if degrees is not None else None
        if key is not None and child is not None and not _is_none(child):
            yield one_setting(option, key, child, vllm, scope)


def _is_none(child: Node) -> bool:
    """Zero says that there is no accelerator (a simulator, CPUs), and no option is passed."""
    return child.kind == "scalar" and child.value.strip() in ("0", "0.0")
