"""Field types and validation shared by every specification file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError

from capplan import units
from capplan.errors import CapplanError, QuantityError, did_you_mean
from capplan.specs.documents import Document


class Spec(BaseModel):
    """Base of all specification parts: immutable, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _quantity(parse: Callable[..., Any], example: str) -> BeforeValidator:
    def validate(value: Any) -> Any:
        if not isinstance(value, str):
            raise QuantityError(f"`{value}` has no unit", hint=f"write it like `{example}`")
        return parse(value, positive=True)

    return BeforeValidator(validate)


Bytes = Annotated[int, _quantity(units.parse_bytes, "80 GB or 80 GiB")]
BytesPerS = Annotated[float, _quantity(units.parse_bytes_per_s, "3.35 TB/s or 400 Gbit/s")]
FlopPerS = Annotated[float, _quantity(units.parse_flop_per_s, "989.4 TFLOP/s")]
Seconds = Annotated[float, _quantity(units.parse_duration, "5.1 us")]
Watts = Annotated[float, _quantity(units.parse_power, "700 W")]
Hertz = Annotated[float, _quantity(units.parse_frequency, "1830 MHz")]

# Counts are bounded so that no product of them leaves the range where floats are sane.
Count = Annotated[int, Strict(), Field(ge=1, le=10**9)]
CountOrZero = Annotated[int, Strict(), Field(ge=0, le=10**15)]
Flag = Annotated[bool, Strict()]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Sources = Annotated[tuple[Text, ...], Field(min_length=1)]

S = TypeVar("S", bound=Spec)


def validate(spec: type[S], document: Document) -> S:
    """Build ``spec`` from a document.

    Raises CapplanError for the first fault, with its place and the number of further faults.
    """
    if not isinstance(document.data, dict):
        raise CapplanError(
            "should be a mapping of fields at the top", location=document.locate(())
        )
    try:
        return spec.model_validate(document.data)
    except ValidationError as error:
        raise _first_fault(spec, document, error) from None


def _first_fault(spec: type[Spec], document: Document, error: ValidationError) -> CapplanError:
    faults = error.errors(include_url=False)
    # A misspelt field is also a missing one; the misspelling is the useful message.
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    path = [step for step in fault["loc"] if not _is_union_tag(step, fault["loc"], document)]
    name = _dotted(path)
    message, hint = _explain(spec, fault, name, path)
    more = len(faults) - 1
    if more:
        message += f" (and {more} more {'fault' if more == 1 else 'faults'} in this file)"
    return CapplanError(message, hint=hint, location=document.locate(path))


def _explain(
    spec: type[Spec], fault: Any, name: str, path: Sequence[str | int]
) -> tuple[str, str | None]:
    original = fault.get("ctx", {}).get("error")
    if fault["type"] == "extra_forbidden":
        known = _field_names(spec, path[:-1])
        hint = did_you_mean(str(path[-1]), known) or (
            f"known here: {', '.join(sorted(known))}" if known else None
        )
        return f"`{name}` is not a known field", hint
    if fault["type"] == "missing":
        return f"`{name}` is missing", None
    if isinstance(original, CapplanError):
        return (f"`{name}`: {original.message}" if name else original.message), original.hint
    text = str(original) if original is not None else fault["msg"]
    given = repr(fault["input"])
    if len(given) > 60:
        given = given[:60] + "..."
    text = text[:1].lower() + text[1:]
    return (f"`{name}`: {text}, not {given}" if name else text), None


def _is_union_tag(step: str | int, loc: Sequence[str | int], document: Document) -> bool:
    """pydantic puts the tag of a discriminated union into the path; files have no such key."""
    position = list(loc).index(step)
    value = document.data
    for earlier in loc[:position]:
        if isinstance(value, dict) and earlier in value:
            value = value[earlier]
        elif isinstance(value, list) and isinstance(earlier, int) and earlier < len(value):
            value = value[earlier]
    return isinstance(value, dict) and step not in value and value.get("kind") == step


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _field_names(spec: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The fields that may stand at ``path``, seen through lists, dicts and unions."""
    here: list[Any] = [spec]
    for step in path:
        models = [m for annotation in here for m in _models_in(annotation)]
        named = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        # A step that names no field is an index or a key of a free mapping.
        here = named or here
    models = [m for annotation in here for m in _models_in(annotation)]
    return sorted({name for model in models for name in model.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
