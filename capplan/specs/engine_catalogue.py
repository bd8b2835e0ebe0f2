"""Finding the profile of an engine by name and version: one YAML file a family."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from capplan.errors import CapplanError, nearest_name, one_line
from capplan.specs.documents import read_yaml
from capplan.specs.engine import EngineSpec, version_key
from capplan.specs.fields import validate

DEFAULT_ENGINE = "vllm"
FOLDER = Path(__file__).resolve().parent.parent / "engines"
_VERSION = re.compile(r"v?(\d{1,6}\.\d{1,6}(?:\.\d{1,6})?)")
_ALIASES = {"tensorrt": "tensorrt-llm", "trtllm": "tensorrt-llm", "trt-llm": "tensorrt-llm"}


@cache
def load_engines(engine: str = "*") -> tuple[EngineSpec, ...]:
    """All families, or those of one engine (files are named for it), by engine and version."""
    paths = sorted(FOLDER.glob(f"{engine}-*.yaml"))
    found = [validate(EngineSpec, read_yaml(path)) for path in paths]
    return tuple(sorted(found, key=lambda spec: (spec.engine, version_key(spec.versions.first))))


def engine_names() -> list[str]:
    return sorted({spec.engine for spec in load_engines()})


def load_engine(name: str = DEFAULT_ENGINE, version: str | None = None) -> EngineSpec:
    """The family of an engine's version; None is the newest.

    Raises CapplanError for an unknown engine or version, with the nearest known one.
    """
    families = _families(name)
    if version is None:
        return families[-1]
    found = _VERSION.match(version.strip())
    if not found:
        raise CapplanError(
            f"`{one_line(version, 40)}` is not a version",
            hint=f"write it like {families[-1].versions.last}",
        )
    for spec in families:
        if _holds(spec, found[1]):
            return spec
    raise _unknown_version(families, found[1])


def version_within(spec: EngineSpec, version: str | None) -> str | None:
    """The numbers of a stated version, where it is one of this family's; else None.

    >>> version_within(load_engine("vllm", "0.11"), "v0.11.2rc1"), version_within(load_engine(), "")
    ('0.11.2', None)
    """
    found = _VERSION.match(version.strip()) if version else None
    return found[1] if found and _holds(spec, found[1]) else None


def engine_at(name: str, month: str) -> EngineSpec:
    """The family that was current in a month (YYYY-MM), where a log does not say its version."""
    families = _families(name)
    past = [spec for spec in families if spec.since <= month]
    return past[-1] if past else families[0]


def _families(name: str) -> list[EngineSpec]:
    wanted = re.sub(r"[\s_-]+", "-", name.strip().lower())
    wanted = _ALIASES.get(wanted, wanted)
    known = re.fullmatch(r"[a-z0-9-]{1,40}", wanted)
    families = [spec for spec in load_engines(wanted) if spec.engine == wanted] if known else []
    if not families:
        near = nearest_name(wanted[:100], engine_names())
        hint = f"did you mean `{near}`? " if near else ""
        hint += f"known: {', '.join(engine_names())}"
        raise CapplanError(f"unknown engine `{one_line(name, 40)}`", hint=hint)
    return families


def _holds(spec: EngineSpec, version: str) -> bool:
    """A family that ends with 0.12 holds 0.12.3 as well."""
    key, last = version_key(version), version_key(spec.versions.last)
    return version_key(spec.versions.first) <= key and key[: len(last)] <= last


def _unknown_version(families: list[EngineSpec], version: str) -> CapplanError:
    first, last = families[0].versions.first, families[-1].versions.last
    key = version_key(version)
    if key < version_key(first):
        near = first
    else:
        near = [s.versions.last for s in families if version_key(s.versions.last) <= key][-1]
    return CapplanError(
        f"no profile of {families[0].engine} {version}",
        hint=f"known are {first} to {last}; the nearest is {near}; "
        "a version is one YAML file in capplan/engines/",
    )
