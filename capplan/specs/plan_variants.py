"""The `variants:` of a plan: the same plan with parts replaced, for a comparison.

A variant is written like a plan and laid over it: mappings are joined key by key, anything else
takes the place of what was there, and an empty value (`~`) takes it away. `note` and `title` are
the variant's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capplan.errors import CapplanError, Location, did_you_mean
from capplan.specs.documents import Document
from capplan.specs.fields import validate
from capplan.specs.plan import Plan

BASE = "as it is"  # the name of the plan itself


@dataclass(frozen=True)
class Variant:
    """`changes`: (field, before, after) as the file has them, None where there is nothing."""

    name: str
    plan: Plan
    document: Document
    changes: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def note(self) -> str | None:
        return self.plan.note


def variants_of(plan: Plan, document: Document) -> tuple[Variant, ...]:
    """The plan itself and its variants, in the order of the file.

    Raises CapplanError where one of them is no plan, at the line of the variant.
    """
    base = {key: value for key, value in document.data.items() if key != "variants"}
    found = [Variant(BASE, plan, document)]
    for name, overrides in (plan.variants or {}).items():
        whole = _laid_over({k: v for k, v in base.items() if k != "note"}, overrides)
        laid = _VariantDocument(document.file, document.text, whole, document, name, overrides)
        changes = tuple(_changes(base, overrides))
        found.append(Variant(name, validate(Plan, laid), laid, changes))
    return tuple(found)


def variant_named(name: str, plan: Plan, document: Document) -> Variant:
    """Raises CapplanError for a name that the plan does not know."""
    known = variants_of(plan, document)
    chosen = next((variant for variant in known if variant.name == name), None)
    if chosen is None:
        names = [variant.name for variant in known]
        hint = did_you_mean(name[:100], names) or f"known: {', '.join(names)}"
        raise CapplanError(
            f"--variant: the plan has no variant `{name[:100]}`",
            hint=hint,
            location=document.locate(("variants",)),
        )
    return chosen


@dataclass(frozen=True)
class _VariantDocument(Document):
    """What was laid together; a fault is shown where its field was written."""

    base: Document
    name: str
    overrides: Mapping[str, Any]

    def locate(self, path: Sequence[str | int]) -> Location:
        value: Any = self.overrides
        for step in path:
            if isinstance(value, Mapping):
                if step not in value:
                    return self.base.locate(path)
                value = value[str(step)]
            elif not isinstance(value, list):
                break
        return self.base.locate(("variants", self.name, *path))


def _laid_over(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(base)
    for key, value in overrides.items():
        if value is None:
            whole.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(whole.get(key), Mapping):
            whole[key] = _laid_over(whole[key], value)
        else:
            whole[key] = value
    return whole


def _changes(
    base: Mapping[str, Any], overrides: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Every field that differs, with its values before and after."""
    for key, after in overrides.items():
        before, name = base.get(key), above + key
        if isinstance(after, Mapping):
            before = before if isinstance(before, Mapping) else {}
            yield from _changes(before, after, f"{name}.")
        elif before != after and name not in ("note", "title"):
            yield name, before, after
