"""llm-d: values of the modelservice chart (`decode`, `prefill`), and benchmark scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from capplan.check.deployment import Deployment, Stated
from capplan.check.documents import File
from capplan.check.flag_tables.table import FlagTable
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import Flag, renamed_settings
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
_MODEL_SETTINGS = {
    "maxModelLen": "max-model-len",
    "blockSize": "block-size",
    "gpuMemoryUtilization": "gpu-memory-utilization",
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
    image = image_of(container, scope)
    engine = (engine_of_image(image.chars) if image is not None else None) or "vllm"
    around = Surroundings(
        shape="llm-d values",
        name=role,
        pod=part,
        role=role,
        model=named,
        gpus=_gpus(degrees, scope),
        replicas=stated(part.get("replicas"), scope),
        pods=stated(degrees.get("workers"), scope)
        if degrees is not None and root.word("multinode") == "true"
        else None,
    )
    options = tuple(_degree_flags(degrees, engine, scope))
    if container.word("modelCommand") in ("vllmServe", "imageDefault"):
        # The chart writes the command; the degrees become options.
        return [from_parts(file, container, around, engine=engine, options=options, extra="args")]
    return server_deployments(file, container, replace(around, flags=options))


def _degree_flags(degrees: Node | None, engine: str, scope: Scope) -> Iterator[Flag]:
    if engine in TABLES:
        yield from _settings(degrees, _DEGREES, TABLES[engine], scope)


def _gpus(degrees: Node | None, scope: Scope) -> Stated | None:
    """GPUs of a pod: tensor-parallel ranks of each local data-parallel rank."""
    if degrees is None:
        return None
    tensor, local = stated(degrees.get("tensor"), scope), stated(degrees.get("dataLocal"), scope)
    if tensor is None or local is None or local.number is None or tensor.number is None:
        return tensor
    return replace(tensor, number=tensor.number * local.number)


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
        gpus=_gpus(degrees, scope),
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
    of_model = {
        "VLLM_MAX_MODEL_LEN": "maxModelLen",
        "VLLM_BLOCK_SIZE": "blockSize",
        "VLLM_ACCELERATOR_MEM_UTIL": "gpuMemoryUtilization",
        "MODEL_PATH": "path",
        "MODEL_NAME": "name",
        "VLLM_MAX_NUM_SEQ": "maxNumSeq",
        "VLLM_MAX_NUM_BATCHED_TOKENS": "maxNumBatchedTokens",
    }
    of_degrees = {"TP_SIZE": "tensor", "DP_SIZE_LOCAL": "dataLocal", "LWS_GROUP_SIZE": "workers"}
    for holder, names in ((model, of_model), (degrees, of_degrees)):
        for variable, field in names.items():
            node = holder.get(field) if holder is not None else None
            value = plain_value(node, scope)
            if value is not None and node is not None:
                line = node.source.line_of(node.offset)
                how = f"`{variable}` = `{value.chars}` (line {line})"
                yield variable, Variable(value.chars, how)


def _model_flags(model: Node | None, degrees: Node | None, scope: Scope) -> Iterator[Flag]:
    yield from _settings(model, _MODEL_SETTINGS, VLLM, scope)
    yield from _settings(degrees, {"tensor": _DEGREES["tensor"]}, VLLM, scope)


def _settings(
    holder: Node | None, options: Mapping[str, str], table: FlagTable, scope: Scope
) -> Iterator[Flag]:
    """Zero says that there is no accelerator (a simulator, CPUs), and no option is passed."""
    if holder is None:
        return
    zeros = {
        field
        for field, (_, child) in holder.entries().items()
        if child.kind == "scalar" and child.value.strip() in ("0", "0.0")
    }
    given = {field: option for field, option in options.items() if field not in zeros}
    yield from renamed_settings(holder, given, table, scope)
