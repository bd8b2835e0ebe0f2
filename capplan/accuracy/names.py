"""Which model and accelerator of the catalogue a measured row is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from capplan.accuracy.measured import MeasuredRun
from capplan.errors import CapplanError, nearest_name, one_line
from capplan.formulas.number_formats import FORMATS
from capplan.specs.catalogue import (
    Found,
    known_names,
    load_hardware,
    load_model,
    names,
    normalised_name,
    places,
)
from capplan.specs.editions import quantisation_format, without_ending
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import num_params_total

# Parameters that a row states may be rounded, or leave out the embedding of a tied model.
_PARAMETERS_TOLERANCE = 0.06
# What publishers add to a model's name without changing its sizes.
_VARIANT = re.compile(
    r"[-_. ](instruct|it|chat|hf|base|preview|thinking|v\d+(\.\d+)?|\d{4}|dynamic|tput|turbo)$",
    re.IGNORECASE,
)
_PRECISION = {
    "fp16": "fp16",
    "bf16": "bf16",
    "fp8": "fp8",
    "fp4": "fp4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int8": "int8",
    "w8a8": "int8",
    "int4": "int4",
    "int4-awq": "int4",
    "awq": "int4",
    "gptq": "int4",
    "w4a16": "int4",
    "w4a8": "int4",
    "fp16/bf16": None,
    "bf16/fp16": None,
    "": None,
}


@dataclass(frozen=True)
class NamedModel:
    """A catalogue model and the format its weights are converted to; None is as its file says."""

    found: Found[ModelSpec]
    dtype: str | None
    notes: tuple[str, ...]

    @property
    def spec(self) -> ModelSpec:
        return self.found.spec


def hardware_of(run: MeasuredRun) -> Found[HardwareSpec]:
    """The accelerator; raises CapplanError where the catalogue has none of that name.

    Where notes give its memory with its name (MLPerf's systems: GH200-144GB), of that size.
    """
    notes = run.columns.get("notes", "")
    sized = re.search(rf"(?<![A-Za-z]){re.escape(run.gpu)}[-_ ]\d+GB", notes)
    if sized and (stem := known_names("hardware").get(normalised_name(sized[0]))):
        return load_hardware(stem)
    return _hardware(run.gpu, places("hardware"))


def model_of(run: MeasuredRun) -> NamedModel:
    """The model in the row's weight format; raises CapplanError where it is not known.

    A name that only a part of fits must have the row's number of parameters: the nearest
    known model is never taken silently.
    """
    return _model(run.model, run.weight_dtype, run.params_b, places("models"))


@lru_cache(maxsize=512)
def _hardware(name: str, _places: tuple[str, ...]) -> Found[HardwareSpec]:
    plain = re.sub(r"\s*\(.*?\)", "", name).strip()
    bare = re.sub(r"^(nvidia|amd)[ -]+", "", plain, flags=re.I)
    short = re.sub(r"[-_ ]?(sxm\d?|oam|pcie)$", "", bare, flags=re.I)
    stems = known_names("hardware")
    for tried in (name, plain, bare, short):
        if stem := stems.get(normalised_name(tried)):
            return load_hardware(stem)
    return load_hardware(name)  # raises, with the nearest name


def _known_model(name: str) -> Found[ModelSpec] | None:
    stem = known_names("models").get(normalised_name(name))
    return load_model(stem) if stem else None


# Thousands of rows name a few dozen models: what was found is kept, for these places.
@lru_cache(maxsize=1024)
def _model(
    name: str, weight_dtype: str, params_b: float | None, _places: tuple[str, ...]
) -> NamedModel:
    found, notes = _sizes(name, params_b)
    return _in_format(found, name, weight_dtype, notes)


def _sizes(name: str, params_b: float | None) -> tuple[Found[ModelSpec], tuple[str, ...]]:
    """The catalogue entry by the whole name, else by a part of it that has these parameters."""
    plain = re.sub(r"\s*\(.*?\)\s*", " ", name).strip()
    if found := _known_model(plain) or _known_model(without_ending(plain)):
        return found, ()
    for short in _shorter(plain):
        found = _known_model(short)
        if found and (params_b is None or _same_size(found.spec, params_b)):
            return found, (f"`{one_line(name, 60)}` read as {found.id}",)
    if params_b is not None:
        # Words of the name in the catalogue's, the number of parameters as measured.
        for candidate in _with_words(plain):
            found = load_model(candidate)
            if _same_size(found.spec, params_b):
                note = f"`{one_line(name, 60)}` read as {found.id}: {params_b:g} B parameters"
                return found, (note,)
    near = nearest_name(plain.rpartition("/")[2][:100], names("models"))
    raise CapplanError(
        f"unknown model `{one_line(name, 60)}`",
        hint=f"did you mean `{near}`?" if near else "add it as one YAML file in models/",
    )


def _shorter(name: str) -> Iterator[str]:
    """The name without organisation, then without one ending after another."""
    short = without_ending(name.rpartition("/")[2])
    yield short
    yield re.sub(r"^(Meta|nvidia|amd|RedHatAI)-", "", short, flags=re.I)
    while match := _VARIANT.search(short):
        short = short[: match.start()]
        yield short
        yield re.sub(r"^Meta-", "", short, flags=re.I)


def _with_words(name: str) -> list[str]:
    """Catalogue names that hold most words of this one, best first."""
    words = set(re.findall(r"[a-z]+|\d+(?:\.\d+)?b?", name.rpartition("/")[2].lower()))
    words -= {"instruct", "it", "chat", "hf", "base", "fp", "the", "v"}
    scored = []
    for known in names("models"):
        own = set(re.findall(r"[a-z]+|\d+(?:\.\d+)?b?", known))
        shared = len(words & own)
        if shared >= 2 or (words and shared == len(words)):
            scored.append((-shared, len(own), known))
    return [known for _, _, known in sorted(scored)]


def _same_size(model: ModelSpec, params_b: float) -> bool:
    total = num_params_total(model)
    return abs(total / 1e9 - params_b) <= _PARAMETERS_TOLERANCE * params_b


def _in_format(
    found: Found[ModelSpec], name: str, weight_dtype: str, notes: tuple[str, ...]
) -> NamedModel:
    """The edition in the row's format: as stored, a sister file, or converted."""
    wanted = _precision(weight_dtype, name)
    stored = found.spec.stored_format
    if wanted is None or wanted == stored or stored.split("-")[0] == wanted:
        return NamedModel(found, None, notes)
    if wanted == "fp4":
        wanted = "nvfp4"
    if stored == "mxfp4" and wanted in ("nvfp4", "fp8"):
        # OpenAI's gpt-oss exists in MXFP4 only; tools label its activations.
        return NamedModel(found, None, (*notes, f"weights stay {stored}"))
    if stored.split("-")[0] == wanted:
        return NamedModel(found, None, notes)
    if sister := _sister(found.id, name, wanted):
        return NamedModel(sister, None, notes)
    if wanted in ("fp16", "bf16") and FORMATS[stored].bits >= 16:
        return NamedModel(found, None, notes)
    note = f"weights converted from {stored} to {wanted}"
    return NamedModel(found, wanted, (*notes, note))


def _precision(weight_dtype: str, name: str) -> str | None:
    """Our format for the row's word; an unknown word is an error, not a guess."""
    if weight_dtype in _PRECISION:
        return _PRECISION[weight_dtype]
    if weight_dtype == "w8a16":
        return "int8"
    stated, number_format = quantisation_format(weight_dtype)
    if stated and number_format is not None:
        return number_format
    if weight_dtype in FORMATS:
        return weight_dtype
    raise CapplanError(
        f"unknown weight format `{one_line(weight_dtype, 40)}` of {one_line(name, 60)}",
        hint=f"known: {', '.join(key for key in _PRECISION if key)}",
    )


def _sister(identity: str, name: str, wanted: str) -> Found[ModelSpec] | None:
    """The catalogue's own file of this edition: some tensors stay in 16 bits."""
    base = without_ending(identity)
    short = without_ending(name.rpartition("/")[2])
    wholes = [base, short, *_shorter(short)]
    for whole in dict.fromkeys(wholes):
        # An edition in 16 bits is the file without an ending.
        ending = "" if wanted in ("fp16", "bf16") else f"-{wanted}"
        found = _known_model(f"{whole}{ending}")
        if found is None:
            continue
        if found.spec.stored_format.split("-")[0] == wanted or not ending:
            return found
    return None
