"""Shell scripts, Dockerfiles, unit files: command lines that start a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from capplan.check.deployment import Deployment, Shm, Stated, parse_number
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag, read_flags, value_of_meaning
from capplan.check.launch import (
    Launch,
    find_launches,
    script_launches,
    version_by_pip,
    version_of,
)
from capplan.check.nodes import Node
from capplan.check.quantities import size_of
from capplan.check.shapes.containers import Surroundings, distinct, role_of
from capplan.check.shapes.model_hints import model_hints
from capplan.check.shapes.resources import listed_devices
from capplan.check.shapes.slurm import by_slurm
from capplan.check.shell import words_of
from capplan.check.source import Text, whole
from capplan.check.values import Scope, Value, Variable, fill_templates, value_of

_EXEC_START = re.compile(r"^ExecStart=[-@:+!]*((?:.*\\\n)*.*)", re.M)
_DOCKERFILE = re.compile(r"^[ \t]*(ENTRYPOINT|CMD)[ \t]+((?:.*\\\n)*.*)$", re.M | re.I)
_DOCKER_ENV = re.compile(r"^[ \t]*(?:ENV|ARG)[ \t]+([A-Za-z_]\w*)[= \t](\S+)[ \t]*$", re.M)
_FROM = re.compile(r"^[ \t]*FROM[ \t]+(\S+)", re.M | re.I)


def read(file: File) -> list[Deployment]:
    """The servers that a file of text starts."""
    name = file.source.file.rpartition("/")[2]
    text = whole(file.source)
    scope = Scope(file.source, overrides=file.overrides)
    around = Surroundings(shape="script", name=name, kubernetes=False)
    if re.search(r"dockerfile|containerfile", name, re.I):
        return distinct(list(_dockerfile(file, text, scope, replace(around, shape="Dockerfile"))))
    if name.endswith(".service"):
        found: list[Deployment] = []
        for match in _EXEC_START.finditer(text.chars):
            line = value_of(text.part(match.start(1), match.end(1)), scope)
            found += script_servers(file, line, scope, replace(around, shape="unit file"))
        return distinct(found)
    if name.endswith((".py", ".md", ".rst", ".txt", ".ipynb", ".csv", ".html")):
        return []
    script = value_of(fill_templates(text, scope), scope)
    servers = distinct(script_servers(file, script, scope, around))
    return [by_slurm(servers[0], scope)] if len(servers) == 1 else servers


def script_servers(
    file: File, script: Value, scope: Scope, around: Surroundings, holder: Node | None = None
) -> list[Deployment]:
    return [launched(file, launch, around, holder) for launch in script_launches(script, scope)]


def _dockerfile(file: File, text: Text, scope: Scope, around: Surroundings) -> Iterator[Deployment]:
    for match in _DOCKER_ENV.finditer(text.chars):
        line = file.source.line_of(match.start())
        value = match[2].strip("\"'")
        scope.variables[match[1]] = Variable(value, f"`{match[1]}` = `{value}` (line {line})")
    bases = [value_of(text.part(m.start(1), m.end(1)), scope) for m in _FROM.finditer(text.chars)]
    around = replace(around, image=bases[-1] if bases else None)
    entry: list[Value] = []
    command: list[Value] = []
    for match in _DOCKERFILE.finditer(text.chars):
        part = text.part(match.start(2), match.end(2))
        words = _exec_form(part, scope)
        if match[1].upper() == "ENTRYPOINT":
            entry, command = words, []
        else:
            command = words
    for launch in find_launches([*entry, *command], scope):
        yield launched(file, launch, around)


def _exec_form(part: Text, scope: Scope) -> list[Value]:
    """`["vllm", "serve"]`, or a text for a shell."""
    if part.chars.lstrip().startswith("["):
        found: list[Value] = []
        for match in re.finditer(r'"((?:[^"\\]|\\.)*)"', part.chars):
            inner = part.part(match.start(1), match.end(1))
            found.append(value_of(inner, scope))
        return found
    return words_of(part, scope)


def launched(
    file: File, launch: Launch, around: Surroundings, holder: Node | None = None
) -> Deployment:
    """A server from its command line and the options of `docker run` before it."""
    table = TABLES.get(launch.engine)
    read = read_flags(launch.words, table) if table is not None else None
    flags: list[Flag] = [*around.flags, *(read.flags if read else ())]
    positional = read.model(table, launch.words) if read and table else None
    image = launch.image or around.image
    gpus, shm, memory = _run_options(launch.before)
    return Deployment(
        source=file.source,
        shape="docker run"
        if launch.image is not None and around.shape == "script"
        else around.shape,
        name=around.name,
        place=launch.place,
        engine=launch.engine,
        flags=tuple(flags),
        hidden=read.hidden if read else (),
        image=image,
        version=version_of(image) or version_by_pip(file.source.text, launch.engine),
        model=value_of_meaning(flags, "model") or positional or around.model,
        model_hints=model_hints(around.pod, holder, launch.scope) if holder is not None else (),
        served_name=value_of_meaning(flags, "served_name"),
        gpus_per_pod=around.gpus or gpus or _visible(launch),
        pods=around.pods,
        gpu_hints=around.hints,
        replicas=around.replicas,
        shm=shm if launch.image is not None else Shm(None, launch.place),
        memory_limit=memory,
        environment=launch.scope.variables,
        role=around.role or role_of(flags, around),
        partial=around.partial,
        kubernetes=around.kubernetes,
        ray=around.ray,
    )


def _visible(launch: Launch) -> Stated | None:
    held = launch.scope.variables.get("CUDA_VISIBLE_DEVICES")
    if held is None or held.may_differ:
        return None
    return listed_devices(held, launch.place)


def _run_options(words: Sequence[Value]) -> tuple[Stated | None, Shm | None, Stated | None]:
    """GPUs, shared memory and the memory limit of `docker run`."""
    gpus: Stated | None = None
    shm: Shm | None = None
    memory: Stated | None = None
    for i, word in enumerate(words):
        name, equals, _ = word.chars.partition("=")
        value = word.part(len(name) + 1) if equals else words[i + 1] if i + 1 < len(words) else None
        if value is None:
            continue
        if name == "--gpus":
            gpus = Stated(value, _num_gpus(value.word))
        elif name == "--shm-size":
            shm = Shm(size_of(value.word, compose=True), value)
        elif name == "--ipc" and value.chars == "host":
            shm = Shm(None, value)
        elif name in ("-m", "--memory"):
            memory = Stated(value, size_of(value.word, compose=True))
    return gpus, shm, memory


def _num_gpus(text: str | None) -> float | None:
    if text is None or text == "all":
        return None
    devices = re.fullmatch(r"\"?'?device=([\w,-]+)'?\"?", text)
    if devices:
        return float(len(devices[1].split(",")))
    return parse_number(text.removeprefix("count="))
