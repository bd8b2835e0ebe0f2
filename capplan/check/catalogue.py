"""Models by whatever a manifest calls them, looked up without searching for near names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from capplan.errors import CapplanError
from capplan.specs.catalogue import (
    known_names,
    load_config,
    load_model,
    normalised_name,
    places,
)
from capplan.specs.editions import WeightEdition, weight_edition, without_ending
from capplan.specs.model import ModelSpec

_SCHEME = re.compile(r"^(?:hf|huggingface)://")
_WIDE = re.compile(r"[-_.](bf16|fp16|bfloat16|float16)$", re.IGNORECASE)


@dataclass(frozen=True)
class KnownModel:
    """A model of the catalogue; ``ending`` says how this checkpoint of it is quantised."""

    id: str
    spec: ModelSpec
    ending: str = ""
    wide: str | None = None  # `DeepSeek-R1-BF16`: converted to this format

    def edition(self, quantisation: str, dtype: str) -> WeightEdition | None:
        """How the weights are held; None where the bytes of that format are not known."""
        if self.wide is not None and not quantisation:
            return WeightEdition(self.wide)
        return weight_edition(self.spec, quantisation or self.ending, dtype)


def known_model(name: str) -> KnownModel | None:
    """The model that a repository's name, or the last part of a path, says; None if unknown."""
    return _known(_SCHEME.sub("", name.strip()).rstrip("/"), places("models"))


@lru_cache(maxsize=512)
def _known(name: str, _places: tuple[str, ...]) -> KnownModel | None:
    if not name or len(name) > 300:
        return None
    names = known_names("models")
    short = without_ending(name)
    wide = _WIDE.search(name)
    for tried, ending, format_ in (
        (name, "", None),
        (short, name[len(short) :], None),
        (name[: wide.start()] if wide else "", "", _FORMATS.get(wide[1].lower()) if wide else None),
    ):
        stem = _stem(tried, names)
        if stem is not None:
            return KnownModel(stem, _load(stem), ending, format_)
    return None


_FORMATS = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16"}


def _load(stem: str) -> ModelSpec:
    """An entry of the catalogue, from the first folder that has it."""
    for place in places("models"):
        path = Path(place) / f"{stem}.yaml"
        if path.exists():
            return load_model(str(path)).spec
    return load_model(stem).spec


def _stem(name: str, names: dict[str, str]) -> str | None:
    full = normalised_name(name)
    base = full.rpartition("/")[2]  # a Hugging Face id under another owner, a local path
    for written in (full, base, base.removeprefix("meta-")):
        if written and written in names:
            return names[written]
    return None


def model_at(path: str, folder: Path) -> KnownModel:
    """A model that a configuration names: of the catalogue, or a file or folder beside it.

    Raises CapplanError where there is none.
    """
    found = known_model(path)
    if found is not None:
        return found
    place = folder / path
    if place.exists():
        config = load_config(str(place)) if place.is_dir() or place.suffix == ".json" else None
        loaded = config or load_model(str(place))
        return KnownModel(path, loaded.spec)
    try:
        loaded = load_model(path)
    except CapplanError as error:
        raise CapplanError(f"models: {error.message}", hint=error.hint) from None
    return KnownModel(loaded.id, loaded.spec)
