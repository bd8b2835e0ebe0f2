"""Finding accelerators and models by name: one YAML file each, and nothing else to register.

Lookup order: an argument with `/` or ending in `.yaml`, `.yml` or `.json` is a path; then each
folder of CAPPLAN_PATH (its `hardware/` and `models/`); then the bundled catalogue. Within a
folder the file's stem is the name; aliases are tried when no stem fits.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from capplan.errors import CapplanError, nearest_name
from capplan.specs.catalogue_files import files_of, folders, holds, own_folders
from capplan.specs.documents import read_yaml
from capplan.specs.fields import validate
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec

S = TypeVar("S", HardwareSpec, ModelSpec)

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Found(Generic[S]):
    """A specification and what to call it: the file's stem, or its path."""

    id: str
    spec: S
    path: Path


def load_hardware(name: str) -> Found[HardwareSpec]:
    """An accelerator by name, alias or path; raises CapplanError with the nearest name."""
    if _is_path(name):
        return _load_file(HardwareSpec, Path(name), name)
    return _by_name(HardwareSpec, "hardware", name)


def load_model(name: str) -> Found[ModelSpec]:
    """A model by name, alias, path of a YAML file, or of a Hugging Face config or its folder.

    Raises CapplanError with the nearest name, or with the place of the fault.
    """
    if not _is_path(name):
        return _by_name(ModelSpec, "models", name)
    path = Path(name)
    if holds(path.is_dir) or path.suffix == ".json":
        return load_config(name)
    if not holds(path.exists) and path.suffix not in _SUFFIXES:
        # `meta-llama/Llama-3.1-8B` looks like a path and is an alias.
        return _by_name(ModelSpec, "models", name)
    return _load_file(ModelSpec, path, name)


def load_config(name: str) -> Found[ModelSpec]:
    """A model from a Hugging Face `config.json`, or from the folder that holds it."""
    from capplan.specs.hf.read import read_config  # most questions never need it

    path = Path(name)
    if holds(path.is_dir):
        path = path / "config.json"
    return Found(name, read_config(path), path)


def names(folder: str) -> list[str]:
    """All catalogue names of `hardware` or `models`, sorted."""
    return sorted(files_of(folder))


def known_names(folder: str) -> dict[str, str]:
    """Every name that `load_model` or `load_hardware` knows, as compared, to its file's stem.

    For many look-ups: the whole folder is read once, for as long as CAPPLAN_PATH says the same.
    """
    return _known_names(folder, places(folder))


@lru_cache(maxsize=8)
def _known_names(folder: str, _places: tuple[str, ...]) -> dict[str, str]:
    files = files_of(folder)
    aliases = {stem: _aliases(path) for stem, path in files.items()}
    short: dict[str, str | None] = {}
    for stem, names_of_file in aliases.items():
        for alias in names_of_file:
            other = short.setdefault(_basename(alias), stem)
            if other != stem:
                short[_basename(alias)] = None
    known = {name: stem for name, stem in short.items() if stem is not None}
    known |= {_normalised(alias): stem for stem, many in aliases.items() for alias in many}
    return known | {_normalised(stem): stem for stem in files}


def places(folder: str) -> tuple[str, ...]:
    """Where files of `hardware` or `models` are looked for, in order."""
    return tuple(str(place) for place in folders(folder))


def normalised_name(name: str) -> str:
    """A name as the keys of `known_names` are written."""
    return _normalised(name)


def load_all(spec: type[S], folder: str) -> list[Found[S]]:
    """The whole catalogue of a folder, by name."""
    return [_load_file(spec, path, stem) for stem, path in sorted(files_of(folder).items())]


def _is_path(name: str) -> bool:
    return "/" in name or os.sep in name or name.endswith(_SUFFIXES)


def _load_file(spec: type[S], path: Path, name: str) -> Found[S]:
    return Found(name, validate(spec, read_yaml(path)), path)


def _by_name(spec: type[S], folder: str, name: str) -> Found[S]:
    files = files_of(folder)
    wanted = _normalised(name)
    for stem, path in files.items():
        if _normalised(stem) == wanted:
            return _load_file(spec, path, stem)
    # Only files that hold the text are read: a catalogue of hundreds must stay instant, and a
    # broken file must not stand in the way of the others.
    held = [p for p in files.items() if wanted in _normalised(_text(p[1]))]
    found = [_load_file(spec, path, stem) for stem, path in held]
    for entry in found:
        if any(_normalised(alias) == wanted for alias in entry.spec.aliases):
            return entry
    # A Hugging Face id without its organisation, where that names one entry.
    short = [e for e in found if any(_basename(alias) == wanted for alias in e.spec.aliases)]
    if len(short) == 1:
        return short[0]
    raise _unknown(folder, name, _all_names(files))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _all_names(files: dict[str, Path]) -> list[str]:
    return [*files, *(alias for path in files.values() for alias in _aliases(path))]


def _aliases(path: Path) -> list[str]:
    """The aliases of a file, for hints: without reading the rest of it."""
    block = re.search(r"^aliases:(.*?)(?=^\S|\Z)", _text(path), re.M | re.S)
    return re.findall(r"[^\s,\[\]'\"][^,\[\]'\"\n]*", block[1]) if block else []


def _basename(alias: str) -> str:
    return _normalised(alias.rpartition("/")[2])


def _normalised(name: str) -> str:
    """Names are compared without case, and with spaces, dashes and underscores alike.

    >>> _normalised("NVIDIA H100_80GB-HBM3")
    'nvidia-h100-80gb-hbm3'
    """
    return re.sub(r"[\s_-]+", "-", name.strip()).lower()


def _unknown(folder: str, name: str, known: list[str]) -> CapplanError:
    what = "accelerator" if folder == "hardware" else "model"
    short = name if len(name) <= 60 else name[:60] + "..."
    near = nearest_name(name[:200], known)
    hint = f"did you mean `{near}`? " if near else ""
    hint += f"`capplan {folder} list` shows all; a path to a file works too"
    missing = [part for part in own_folders() if not holds(Path(part).is_dir)]
    if missing:
        hint += f"; CAPPLAN_PATH names `{missing[0]}`, which is no folder"
    return CapplanError(f"unknown {what} `{short}`", hint=hint)
