"""Options in files that a ConfigMap mounts: `--config /etc/worker.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capplan.check.documents import File, inner_documents
from capplan.check.flag_tables.table import FlagTable
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag, mapping_flags
from capplan.check.launch import Launch
from capplan.check.nodes import Node
from capplan.check.values import Scope


def config_flags(
    file: File,
    container: Node,
    pod: Node | None,
    flags: Sequence[Flag],
    launch: Launch,
    scope: Scope,
) -> Iterator[Flag]:
    """The options in the file that `--config` names, where a ConfigMap in this file is mounted."""
    table = TABLES[launch.engine]
    for flag in flags:
        if flag.meaning != "config" or flag.value is None:
            continue
        for data in mounted_files(file, container, pod, flag.value.chars):
            for root in inner_documents(data):
                yield from flattened(root, table, scope)


def flattened(root: Node, table: FlagTable, scope: Scope) -> Iterator[Flag]:
    """Options of a settings file, also those one level down (`kv_cache_config:`)."""
    yield from mapping_flags(root, table, scope)
    for _, (_, child) in root.entries().items():
        if child.kind == "mapping":
            yield from (f for f in mapping_flags(child, table, scope) if f.meaning)


def mounted_files(file: File, container: Node, pod: Node | None, path: str) -> Iterator[Node]:
    """The texts of a ConfigMap that are mounted at a path."""
    folder, _, name = path.rpartition("/")
    mounts = container.get("volumeMounts")
    for mount in mounts.items or () if mounts is not None else ():
        at = (mount.word("mountPath") or "").rstrip("/")
        if at not in (folder, path):
            continue
        key = mount.word("subPath") or name
        volumes = (pod.get("volumes") if pod is not None else None) or container
        for volume in volumes.items or ():
            if volume.word("name") == mount.word("name"):
                data = file.config_maps.get(volume.word("configMap", "name") or "")
                held = data.get(key) if data is not None else None
                if held is not None:
                    yield held
