"""A container as a server: its command, variables, GPUs, probes and shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capplan.check.deployment import Deployment, Stated
from capplan.check.documents import File
from capplan.check.flag_tables.table import FlagTable
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flag_tables.tgi import ENVIRONMENT
from capplan.check.flags import Flag, ReadFlags, one_setting, read_flags, value_of_meaning
from capplan.check.launch import (
    Launch,
    engine_of_image,
    find_launches,
    outside,
    version_of,
)
from capplan.check.nodes import Node
from capplan.check.shapes.fields import plain_value
from capplan.check.shapes.model_hints import model_hints
from capplan.check.shapes.mounted import config_flags
from capplan.check.shapes.resources import gpu_hints, gpus_of, memory_limit_of, probes_of, shm_of
from capplan.check.shell import commands
from capplan.check.values import HOLE, Scope, Value, Variable, fill_kubernetes, literal

# Variables that hold further options of the server.
_ARGUMENT_VARIABLES = ("VLLM_ADDITIONAL_ARGS", "VLLM_EXTRA_ARGS", "VLLM_ARGS", "VLLM_SERVE_ARGS")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Surroundings:
    """What stands around a container and holds for it."""

    shape: str
    name: str
    pod: Node | None = None
    pods: Stated | None = None
    other_gpus: Stated | None = None
    replicas: Stated | None = None
    role: str | None = None
    extra_variables: tuple[tuple[str, Variable], ...] = ()
    image: Value | None = None
    model: Value | None = None
    gpus: Stated | None = None
    hints: tuple[Value, ...] = ()
    flags: tuple[Flag, ...] = ()
    partial: bool = False
    kubernetes: bool = True
    ray: bool = False


def scope_of(file: File, container: Node | None, around: Surroundings) -> Scope:
    """The variables that a container sees."""
    scope = Scope(file.source, overrides=file.overrides)
    for name, variable in around.extra_variables:
        scope.variables[name] = variable
    if container is None:
        return scope
    for entry in (container.get("envFrom") or container).items or ():
        data = file.config_maps.get(entry.word("configMapRef", "name") or "")
        if data is not None:
            for name, (_, node) in data.entries().items():
                _set(scope, name, node)
    for key in ("env", "envs", "extraEnvVars", "environment"):
        read_env(container.get(key), file, scope)
    return scope


def read_env(node: Node | None, file: File, scope: Scope) -> None:
    """`env:` as a list of names and values, or as a mapping."""
    if node is None:
        return
    for entry in node.items or ():
        name = entry.word("name") or entry.word("key")
        if name is None:
            continue
        value = entry.get("value")
        if value is not None:
            _set(scope, name, value)
            continue
        reference = entry.get("valueFrom", "configMapKeyRef")
        data = file.config_maps.get(reference.word("name") or "") if reference else None
        held = data.get(reference.word("key") or "") if data and reference else None
        if held is not None:
            _set(scope, name, held)
        elif entry.get("valueFrom") is not None:
            scope.variables.pop(name, None)
    if node.kind == "mapping":
        for name, (_, value) in node.entries().items():
            _set(scope, name, value)


def _set(scope: Scope, name: str, node: Node) -> None:
    if node.kind != "scalar" or name in scope.overrides:
        return
    text = fill_kubernetes(node.text(), scope).chars
    line = node.source.line_of(node.offset)
    scope.variables[name] = Variable(text, f"`{name}` = `{text[:80]}` (line {line})")


def argv_of(
    container: Node, scope: Scope, names: Sequence[str] = ("command", "args")
) -> list[Value]:
    """Command and arguments, one after the other; one that is a text is what a shell gets."""
    argv: list[Value] = []
    for name in names:
        node = container.get(name)
        if node is None:
            continue
        if node.kind == "scalar" and not node.is_null:
            for command in commands(fill_kubernetes(node.text(), scope), scope)[:1]:
                argv.extend(command.words)
        for item in node.items or ():
            value = plain_value(item, scope)
            if value is not None:
                argv.append(value)
            elif item.kind == "list":
                argv.extend(v for v in (plain_value(i, scope) for i in item.items or ()) if v)
    return argv


def image_of(container: Node, scope: Scope) -> Value | None:
    """`image:` as a text, or as repository and tag."""
    node = container.get("image")
    value = plain_value(node, scope)
    if value is not None or node is None:
        return value
    repository = plain_value(node.get("repository") or node.get("name") or node.get("image"), scope)
    tag = plain_value(node.get("tag"), scope)
    if repository is None or tag is None or ":" in repository.chars.rpartition("/")[2]:
        return repository
    return literal(repository.text.source, f"{repository.chars}:{tag.chars}", repository.offset)


def server_deployments(file: File, container: Node, around: Surroundings) -> list[Deployment]:
    """The servers that a container starts; none for a router, a sidecar or a worker."""
    scope = scope_of(file, container, around)
    argv = argv_of(container, scope)
    image = image_of(container, scope) or around.image
    launches = find_launches(argv, scope)
    if not launches and image is not None:
        launches = _by_image(container, image, argv, scope)
    found = [_deployment(file, container, launch, image, around) for launch in launches]
    return distinct(found)


def _by_image(container: Node, image: Value, argv: list[Value], scope: Scope) -> list[Launch]:
    """An image starts its server by itself where the container names no command."""
    engine = engine_of_image(image.chars)
    if engine is None or container.get("command") is not None:
        return []
    if argv and not (argv[0].chars.startswith(("-", HOLE)) or _REPOSITORY.fullmatch(argv[0].chars)):
        return []
    # Without a word of options, a server of vLLM or SGLang has no model: it is a template of pods.
    named = any(name in scope.variables for name in ("MODEL_ID", "MODEL", "LLM_MODEL_ID"))
    if not argv and engine != "nim" and not named:
        return []
    words = tuple(outside(word, scope) for word in argv)
    return [Launch(engine, words, (), scope, argv[0] if argv else image)]


def distinct(found: list[Deployment]) -> list[Deployment]:
    """Without repeats: two branches of a script that start the same server."""
    kept: dict[tuple[object, ...], Deployment] = {}
    for deployment in found:
        sized = tuple((f.meaning, f.raw) for f in deployment.flags if f.meaning)
        model = deployment.model.chars if deployment.model else None
        kept.setdefault((deployment.name, deployment.engine, model, sized), deployment)
    return list(kept.values())


def _deployment(
    file: File, container: Node, launch: Launch, image: Value | None, around: Surroundings
) -> Deployment:
    scope = launch.scope
    table = TABLES.get(launch.engine)
    flags: list[Flag] = list(around.flags)
    hidden: list[Value] = []
    model: Value | None = None
    if table is not None:
        read = read_flags(launch.words, table)
        flags += config_flags(file, container, around.pod, read.flags, launch, scope)
        flags += read.flags
        hidden += read.hidden
        for extra in _variable_flags(container, launch, scope):
            flags += extra.flags
            hidden += extra.hidden
        if not launch.place.chars.endswith(".py"):
            model = read.model(table, launch.words)
    if launch.engine == "tgi":
        flags = [*_tgi_environment(container, scope), *flags]
    model = value_of_meaning(flags, "model") or model or around.model
    gpus, resource = gpus_of(container, around.pod, file, scope)
    image = launch.image or image
    hints = model_hints(around.pod, container, scope)
    if around.model is not None and around.model is not model:
        hints = (around.model, *hints)
    return Deployment(
        source=file.source,
        shape=around.shape,
        name=around.name,
        place=launch.place,
        engine=launch.engine,
        flags=tuple(flags),
        hidden=tuple(hidden),
        image=image,
        version=version_of(image),
        model=model,
        model_hints=hints,
        served_name=value_of_meaning(flags, "served_name"),
        gpus_per_pod=around.gpus or gpus,
        pods=around.pods,
        other_gpus=around.other_gpus,
        gpu_hints=(*around.hints, *gpu_hints(around.pod, scope)),
        resource=resource,
        replicas=around.replicas,
        shm=shm_of(container, around.pod, scope),
        memory_limit=memory_limit_of(container, scope),
        probes=dict(probes_of(container)),
        environment=dict(scope.variables),
        role=around.role or role_of(flags, around),
        partial=around.partial or file.templated,
        kubernetes=around.kubernetes,
        ray=around.ray or "RAY_ADDRESS" in scope.variables or _joins_ray(container, scope),
    )


def _joins_ray(container: Node, scope: Scope) -> bool:
    """Whether the script starts or joins a Ray cluster, whose GPUs stand elsewhere."""
    words = " ".join(value.chars for value in argv_of(container, scope))
    return re.search(r"ray start|ray_cluster_size|RAY_START|multi-node-serving", words) is not None


def role_of(flags: Sequence[Flag], around: Surroundings) -> str | None:
    for flag in flags:
        if flag.name == "disaggregation-mode" and flag.text in ("prefill", "decode"):
            return flag.text
    for role in ("prefill", "decode"):
        if role in around.name.lower():
            return role
    return None


def _variable_flags(container: Node, launch: Launch, scope: Scope) -> Iterator[ReadFlags]:
    """Options in a variable that the image's own script passes on."""
    used = " ".join(word.raw for word in launch.words)
    unused = [name for name in _ARGUMENT_VARIABLES if name not in used]
    yield from options_in(container, unused, TABLES[launch.engine], scope)


def options_in(
    container: Node, names: Sequence[str], table: FlagTable, scope: Scope
) -> Iterator[ReadFlags]:
    """The options that variables of these names hold."""
    for entry in (container.get("env") or container).items or ():
        node = entry.get("value")
        if entry.word("name") in names and node is not None:
            for command in commands(fill_kubernetes(node.text(), scope), scope.child()):
                yield read_flags(command.words, table)


def _tgi_environment(container: Node, scope: Scope) -> Iterator[Flag]:
    for entry in (container.get("env") or container).items or ():
        name, key, value = entry.word("name"), entry.get("name"), entry.get("value")
        if name in ENVIRONMENT and key is not None and value is not None:
            yield one_setting(ENVIRONMENT[name], key, value, TABLES["tgi"], scope)
    mapping = container.get("env") or container.get("environment")
    for name, (key, value) in (mapping.entries() if mapping is not None else {}).items():
        if name in ENVIRONMENT and value.kind == "scalar":
            yield one_setting(ENVIRONMENT[name], key, value, TABLES["tgi"], scope)
