"""Field types and validation shared by every specification file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
)

from capplan import units
from capplan.errors import CapplanError, QuantityError, did_you_mean, one_line
from capplan.specs.documents import Document


class Spec(BaseModel):
    """Base of all specification parts: immutable, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SpecError(ValueError):
    """A fault between fields, found by a model's own check.

    ``path`` leads to where it stands, from the part that is checked.
    """

    def __init__(self, message: str, *path: str | int, hint: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint


def _quantity(parse: Callable[..., Any], example: str, least: str, most: str) -> BeforeValidator:
    """A text with a unit; outside ``least`` to ``most`` no such thing was ever built."""
    bounds = parse(least), parse(most)

    def validate(value: Any) -> Any:
        if not isinstance(value, str):
            problem = "has no unit" if _is_number(value) else "is not a quantity"
            raise QuantityError(f"{shown(value)} {problem}", hint=f"write it like `{example}`")
        found = parse(value, positive=True)
        if not bounds[0] <= found <= bounds[1]:
            hint = f"{least} to {most} are possible"
            raise QuantityError(f"`{value}` is out of range", hint=hint)
        return found

    return BeforeValidator(validate, json_schema_input_type=str)


def _iso_date(value: Any) -> Any:
    # pydantic would read 20261109 as seconds since 1970.
    if not isinstance(value, str):
        raise QuantityError(f"{shown(value)} is not a date", hint="write it like 2026-11-09")
    return value


def _no_controls(text: str) -> str:
    if found := _CONTROLS.search(text):
        raise ValueError(f"holds the control character {found[0]!a}")
    return text


# What a terminal would obey instead of show: escape sequences, and marks that reverse the text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

Bytes = Annotated[int, _quantity(units.parse_bytes, "80 GB or 80 GiB", "1 kB", "1 PB")]
BytesPerS = Annotated[
    float,
    _quantity(units.parse_bytes_per_s, "3.35 TB/s or 400 Gbit/s", "1 MB/s", "1 PB/s"),
]
FlopPerS = Annotated[
    float, _quantity(units.parse_flop_per_s, "989.4 TFLOP/s", "1 GFLOP/s", "1 EFLOP/s")
]
Seconds = Annotated[float, _quantity(units.parse_duration, "5.1 us", "1 ns", "1 h")]
Watts = Annotated[float, _quantity(units.parse_power, "700 W", "1 W", "1 MW")]
Hertz = Annotated[float, _quantity(units.parse_frequency, "1830 MHz", "1 MHz", "1000 GHz")]
Date = Annotated[date, BeforeValidator(_iso_date)]
Month = Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]

# Counts are bounded so that no product of them leaves the range where floats are sane.
Count = Annotated[int, Strict(), Field(ge=1, le=10**9)]
CountOrZero = Annotated[int, Strict(), Field(ge=0, le=10**15)]
Flag = Annotated[bool, Strict()]
Text = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_no_controls)]
Fraction = Annotated[float, Strict(), Field(gt=0, le=1, allow_inf_nan=False)]
Sources = Annotated[tuple[Text, ...], Field(min_length=1)]

S = TypeVar("S", bound=Spec)


def validate(spec: type[S], document: Document) -> S:
    """Build ``spec`` from a document.

    Raises CapplanError for the first fault, with its place and the number of further faults.
    """
    if not isinstance(document.data, dict):
        raise CapplanError("the file should be a mapping of fields", location=document.locate(()))
    try:
        return spec.model_validate(document.data)
    except ValidationError as error:
        raise _first_fault(spec, document, error) from None


def _first_fault(spec: type[Spec], document: Document, error: ValidationError) -> CapplanError:
    faults = error.errors(include_url=False)
    # An entry that fails is not counted either: a list of one faulty entry is no empty list.
    faults = [f for f in faults if f["type"] != "too_short"] or faults
    # A misspelt field is also a missing one; the misspelling is the useful message.
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    original = fault.get("ctx", {}).get("error")
    steps = _steps(fault["loc"], document)
    path = [step for step in steps if not isinstance(step, _Tag)]
    if isinstance(original, SpecError):
        path += original.path
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        path.append(_tag_field(fault))
    message, hint = _explain(spec, fault, original, path, steps)
    more = len(faults) - 1
    if more:
        message += f" (and {more} more {'fault' if more == 1 else 'faults'} in this file)"
    return CapplanError(message, hint=hint, location=document.locate(path))


def _explain(
    spec: type[Spec],
    fault: Any,
    original: Any,
    path: Sequence[str | int],
    steps: Sequence[str | int],
) -> tuple[str, str | None]:
    """Message and hint in our words; pydantic's stand in where we have none."""
    name = _dotted(path)
    kind, context, given = fault["type"], fault.get("ctx", {}), fault["input"]
    if kind == "extra_forbidden":
        known = _field_names(spec, steps[:-1])
        hint = did_you_mean(str(path[-1])[:100], known) or (
            f"known here: {', '.join(sorted(known))}" if known else None
        )
        return f"`{name}` is not a known field", hint
    if kind in ("missing", "union_tag_not_found"):
        tags = _tags(spec, path[:-1], str(path[-1])) if kind != "missing" else []
        return f"`{name}` is missing", f"one of: {', '.join(tags)}" if tags else None
    if isinstance(original, CapplanError):
        return f"`{name}`: {original.message}", original.hint
    if isinstance(original, ValueError):
        return f"`{name}` {original}", getattr(original, "hint", None)
    if kind in ("literal_error", "union_tag_invalid"):
        allowed = re.findall(r"'([^']*)'", str(context.get("expected")))
        allowed = allowed or _tags(spec, path[:-1], str(path[-1]))
        given = given.get(path[-1]) if kind == "union_tag_invalid" else given
        near = did_you_mean(given, allowed) if isinstance(given, str) else None
        message = f"`{name}` should be one of {', '.join(allowed)}, not {shown(given)}"
        return message, near
    if kind == "too_short":
        return f"`{name}` should have at least one entry", None
    phrase = _PHRASES.get(kind)
    text = phrase.format(**context) if phrase else fault["msg"][:1].lower() + fault["msg"][1:]
    return f"`{name}` {text}, not {shown(given)}", None


_PHRASES = {
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "finite_number": "should be a finite number",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
    "string_too_short": "should be a text of one character or more",
    "string_too_long": "should be a text of at most {max_length} characters",
    "tuple_type": "should be a list",
    "dict_type": "should be a mapping",
    "model_type": "should be a mapping of fields",
    "model_attributes_type": "should be a mapping of fields",
    "greater_than": "should be above {gt}",
    "greater_than_equal": "should be {ge} or more",
    "less_than": "should be below {lt}",
    "less_than_equal": "should be at most {le}",
    "date_from_datetime_parsing": "should be a date like 2026-11-09",
    "date_parsing": "should be a date like 2026-11-09",
    "string_pattern_mismatch": "should look like {pattern}",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value from a file as an error quotes it."""
    if value is None:
        return "an empty value"
    if isinstance(value, (dict, list, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"`{text[:60]}...`" if len(text) > 60 else f"`{text}`"


class _Tag(str):
    """A step of pydantic's that no reader of the file sees: the tag of a union, or `[key]`."""

    __slots__ = ()


def _steps(loc: Sequence[str | int], document: Document) -> list[str | int]:
    """The steps to a fault, with those that pydantic adds marked."""
    found: list[str | int] = []
    value = document.data
    for at, step in enumerate(loc):
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif step == "[key]" or (isinstance(value, dict) and _is_tag(value, step, loc[at + 1 :])):
            found.append(_Tag(step))
            continue
        else:
            value = None
        found.append(step)
    return found


def _is_tag(value: dict[str, Any], step: str | int, rest: Sequence[str | int]) -> bool:
    """The tag of a union as pydantic names it: a kind, or an engine's name, said or not."""
    return value.get("kind") == step or bool(rest and step in (value.get("name"), "vllm"))


def _tag_field(fault: Any) -> str:
    """The field that tells the members of a union apart."""
    return str(fault.get("ctx", {}).get("discriminator", "kind")).strip("'")


def _tags(spec: type[BaseModel], path: Sequence[str | int], field: str = "kind") -> list[str]:
    """The kinds that a union at ``path`` knows."""
    fields = [model.model_fields for model in _models_at(spec, path)]
    return [tag for each in fields if field in each for tag in get_args(each[field].annotation)]


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + one_line(step, 60)
    return text


def _field_names(spec: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The fields that may stand at ``path``."""
    models = _models_at(spec, path)
    return sorted({name for model in models for name in model.model_fields})


def _models_at(spec: type[BaseModel], path: Sequence[str | int]) -> list[type[BaseModel]]:
    """What may stand at ``path``, seen through lists, dicts and unions."""
    here: list[Any] = [spec]
    for step in path:
        models = [m for annotation in here for m in _models_in(annotation)]
        if isinstance(step, _Tag):
            here = [m for m in models if step in _literals(m)] or here
            continue
        named = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        # A step that names no field is an index or a key of a free mapping.
        here = named or here
    return [m for annotation in here for m in _models_in(annotation)]


def _literals(model: type[BaseModel]) -> list[Any]:
    fields = [model.model_fields[name] for name in ("kind", "name") if name in model.model_fields]
    return [value for field in fields for value in get_args(field.annotation)]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
