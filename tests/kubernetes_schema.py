"""Kubernetes' published API, as the dataclasses of lightkube-models, held against a document.

The classes come without the client that they are made for; two names of it stand in here.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints


def _models(module: str) -> types.ModuleType:
    if "lightkube.core.schema" not in sys.modules:
        schema = types.ModuleType("lightkube.core.schema")
        schema.DictMixin = object  # type: ignore[attr-defined]
        schema.field = lambda **more: dataclasses.field(  # type: ignore[attr-defined]
            **({"metadata": more.pop("metadata")} if "metadata" in more else {}),
            **({"default": more["default"]} if "default" in more else {}),
        )
        schema.dataclass = dataclasses.dataclass  # type: ignore[attr-defined]
        core = types.ModuleType("lightkube.core")
        sys.modules |= {"lightkube.core": core, "lightkube.core.schema": schema}
    return importlib.import_module(f"lightkube.models.{module}")


KINDS = {
    "Deployment": ("apps_v1", "Deployment"),
    "Service": ("core_v1", "Service"),
    "ConfigMap": ("core_v1", "ConfigMap"),
}


def faults(document: dict[str, Any]) -> list[str]:
    """Unknown fields, missing ones and wrong types, each with its path."""
    module, name = KINDS[document["kind"]]
    return list(_faults(document, getattr(_models(module), name), document["kind"]))


def pod_faults(spec: dict[str, Any]) -> list[str]:
    """The same for a PodSpec, which other kinds embed."""
    return list(_faults(spec, _models("core_v1").PodSpec, "PodSpec"))


def _faults(value: Any, kind: Any, path: str) -> Iterator[str]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        tried = [list(_faults(value, one, path)) for one in inner if one is not type(None)]
        yield from min(tried, key=len)
    elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
        yield from _object_faults(value, kind, path)
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path}: {value!r} is no list"
            return
        for i, item in enumerate(value):
            yield from _faults(item, inner[0], f"{path}[{i}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no mapping"
            return
        for key, item in value.items():
            yield from _faults(item, inner[1], f"{path}.{key}")
    elif isinstance(kind, type) and (
        not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    ):
        yield f"{path}: {value!r} is no {kind.__name__}"


def _object_faults(value: Any, kind: type, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no mapping"
        return
    hints = get_type_hints(kind)
    required = {
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    for name in required - value.keys():
        yield f"{path}: no {name}"
    for key, item in value.items():
        if key not in hints:
            yield f"{path}: no such field as {key}"
        else:
            yield from _faults(item, hints[key], f"{path}.{key}")
