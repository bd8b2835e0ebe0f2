"""docker compose: services with their variables, defaults, anchors and devices."""

from __future__ import annotations

from pathlib import Path

from capplan.check.deployment import Deployment, Probe, Shm, Stated, parse_number
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flag_tables.tgi import ENVIRONMENT
from capplan.check.flags import Flag, one_setting, read_flags, value_of_meaning
from capplan.check.launch import Launch, engine_of_image, find_launches, version_of
from capplan.check.nodes import Node
from capplan.check.quantities import size_of
from capplan.check.shapes.containers import Surroundings, distinct, role_of
from capplan.check.shapes.resources import listed_devices
from capplan.check.shell import words_of
from capplan.check.source import Text
from capplan.check.values import Scope, Value, Variable, fill_braces, literal, value_of

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read(file: File, root: Node) -> list[Deployment]:
    services = root.get("services")
    if services is None or services.kind != "mapping" or root.get("apiVersion") is not None:
        return []
    outer = Scope(file.source, overrides=file.overrides)
    for name, variable in env_file(Path(file.source.file).parent / ".env").items():
        outer.variables[name] = variable
    found: list[Deployment] = []
    for name, (_, service) in services.entries().items():
        if service.kind == "mapping":
            found += _service(file, name, service, outer)
    return found


def env_file(path: Path) -> dict[str, Variable]:
    """`KEY=value` lines of a file that lies there; nothing where it does not."""
    try:
        if not path.is_file() or path.stat().st_size > 65_536:
            return {}
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, Variable] = {}
    for number, line in enumerate(lines, 1):
        name, equals, text = line.strip().removeprefix("export ").partition("=")
        if equals and name.isidentifier():
            plain = text.strip().strip("'\"")
            found[name] = Variable(plain, f"`{name}` = `{plain[:80]}` ({path.name}:{number})")
    return found


def _filled(node: Node | None, outer: Scope) -> Value | None:
    if node is None or node.kind != "scalar" or node.is_null:
        return None
    return value_of(fill_braces(node.text(), outer, escaped=True), outer)


def _service(file: File, name: str, service: Node, outer: Scope) -> list[Deployment]:
    image = _filled(service.get("image"), outer)
    inner = outer.child()
    inner.variables = _environment(file, service, outer)
    argv: list[Value] = []
    for key in ("entrypoint", "command"):
        argv += _words(service.get(key), outer)
    launches = find_launches(argv, inner)
    engine = engine_of_image(image.chars) if image is not None else None
    if not launches and engine is not None and image is not None:
        plain = not argv or argv[0].chars.startswith("-")
        if plain or (
            service.get("entrypoint") is None and "/" in argv[0].chars and " " not in argv[0].chars
        ):
            launches = [Launch(engine, tuple(argv), (), inner, argv[0] if argv else image)]
    return distinct([_deployment(file, name, service, launch, image, outer) for launch in launches])


def _words(node: Node | None, outer: Scope) -> list[Value]:
    """A list as it stands; a text as compose splits it, which knows no variables of a shell."""
    if node is None:
        return []
    if node.kind == "scalar":
        text = fill_braces(node.text(), outer, escaped=True)
        if text.chars.lstrip().startswith("["):
            return []
        return words_of(_without_dollars(text), outer)
    values = (_filled(item, outer) for item in node.items or ())
    return [value for value in values if value is not None]


def _without_dollars(text: Text) -> Text:
    """Dollars left after compose are for a shell inside, and compose starts none."""
    return Text(text.source, text.chars.replace("\n", " "), text.offsets)


def _environment(file: File, service: Node, outer: Scope) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    files = service.get("env_file")
    names = [] if files is None else files.items or [files]
    for item in names:
        path = item.word("path") if item.kind == "mapping" else item.value
        if path and not Path(path).is_absolute() and ".." not in Path(path).parts:
            found |= env_file(Path(file.source.file).parent / path)
    node = service.get("environment")
    for key, (_, child) in (node.entries() if node is not None else {}).items():
        value = _filled(child, outer)
        if value is not None:
            found[key] = _variable(key, value)
    for item in (node.items or ()) if node is not None else ():
        value = _filled(item, outer)
        key, equals, _ = value.chars.partition("=") if value is not None else ("", "", "")
        if value is not None and equals:
            found[key] = _variable(key, value.part(len(key) + 1))
    return found


def _variable(name: str, value: Value) -> Variable:
    line = value.text.source.line_of(value.offset)
    via = f", {value.notes[0]}" if value.notes else ""
    return Variable(value.chars, f"`{name}` = `{value.chars[:80]}` (line {line}{via})")


def _deployment(
    file: File, name: str, service: Node, launch: Launch, image: Value | None, outer: Scope
) -> Deployment:
    table = TABLES.get(launch.engine)
    read = read_flags(launch.words, table) if table is not None else None
    flags: list[Flag] = []
    if launch.engine == "tgi":
        flags += _tgi(service, launch.scope)
    flags += read.flags if read else ()
    positional = read.model(table, launch.words) if read and table else None
    gpus, hints = _gpus(service, launch, outer)
    memory = _filled(
        service.get("mem_limit") or service.get("deploy", "resources", "limits", "memory"), outer
    )
    return Deployment(
        source=file.source,
        shape="compose",
        name=name,
        place=launch.place,
        engine=launch.engine,
        flags=tuple(flags),
        hidden=read.hidden if read else (),
        image=image,
        version=version_of(image),
        model=value_of_meaning(flags, "model") or positional,
        served_name=value_of_meaning(flags, "served_name"),
        gpus_per_pod=gpus,
        gpu_hints=hints,
        replicas=_replicas(service, outer),
        shm=_shm(service, outer),
        memory_limit=Stated(memory, size_of(memory.word, compose=True)) if memory else None,
        probes=_probes(service, outer),
        environment=launch.scope.variables,
        role=role_of(flags, Surroundings("compose", name)),
        partial=service.get("extends") is not None,
    )


def _tgi(service: Node, scope: Scope) -> list[Flag]:
    node = service.get("environment")
    found = []
    for name, (key, child) in (node.entries() if node is not None else {}).items():
        if name in ENVIRONMENT:
            found.append(one_setting(ENVIRONMENT[name], key, child, TABLES["tgi"], scope))
    for item in (node.items or ()) if node is not None else ():
        value = _filled(item, scope)
        name = value.chars.partition("=")[0] if value is not None else ""
        if value is not None and name in ENVIRONMENT and "=" in value.chars:
            option = ENVIRONMENT[name]
            meaning = TABLES["tgi"].meanings.get(option)
            found.append(
                Flag(name, option, meaning, value.part(len(name) + 1), value.part(0, len(name)))
            )
    return found


def _gpus(service: Node, launch: Launch, outer: Scope) -> tuple[Stated | None, tuple[Value, ...]]:
    """Devices by number or by list; `count: all` says nothing of how many there are."""
    devices = service.get("deploy", "resources", "reservations", "devices")
    for device in (devices.items or ()) if devices is not None else ():
        ids = device.get("device_ids")
        if ids is not None and ids.items is not None:
            place = literal(ids.source, f"{len(ids.items)} device_ids", ids.offset)
            return Stated(place, float(len(ids.items))), ()
        count = _filled(device.get("count"), outer)
        if count is not None:
            return Stated(count, parse_number(count.word)), ()
    gpus = service.get("gpus")
    count = _filled(gpus, outer)
    if count is not None:
        return Stated(count, parse_number(count.word)), ()
    for name in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        held = listed_devices(launch.scope.variables.get(name), launch.place)
        if held is not None:
            return held, ()
    return None, ()


def _replicas(service: Node, outer: Scope) -> Stated | None:
    value = _filled(service.get("deploy", "replicas") or service.get("scale"), outer)
    return None if value is None else Stated(value, parse_number(value.word))


def _shm(service: Node, outer: Scope) -> Shm | None:
    ipc = _filled(service.get("ipc"), outer)
    if ipc is not None and ipc.chars.startswith(("host", "shareable", "service:")):
        return Shm(None, ipc)
    size = _filled(service.get("shm_size"), outer)
    if size is not None:
        return Shm(size_of(size.word, compose=True), size)
    for volume in (service.get("volumes") or service).items or ():
        if volume.kind == "scalar" and ":/dev/shm" in volume.value:
            return Shm(None, _filled(volume, outer))
        if volume.word("target") == "/dev/shm":
            return Shm(None, _filled(volume.get("target"), outer))
    for tmpfs in (service.get("tmpfs") or service).items or ():
        if tmpfs.kind == "scalar" and tmpfs.value.startswith("/dev/shm"):
            return Shm(None, _filled(tmpfs, outer))
    return None


def _probes(service: Node, outer: Scope) -> dict[str, Probe]:
    """A health check restarts nothing by itself: it is a readiness probe."""
    node = service.get("healthcheck")
    key = service.key("healthcheck")
    if node is None or key is None:
        return {}
    start, interval = (
        _seconds(node, "start_period", 0, outer),
        _seconds(node, "interval", 30, outer),
    )
    timeout = _seconds(node, "timeout", 30, outer)
    retries = parse_number(node.word("retries")) or 3.0
    probe = Probe(
        "readiness", literal(key.source, key.value, key.offset), start, interval, retries, timeout
    )
    return {"readiness": probe}


def _seconds(node: Node, name: str, default: float, outer: Scope) -> float:
    value = _filled(node.get(name), outer)
    text = value.chars if value is not None else ""
    for unit in sorted(_UNITS_S, key=len, reverse=True):
        if text.endswith(unit) and (number := parse_number(text.removesuffix(unit))) is not None:
            return number * _UNITS_S[unit]
    return default
