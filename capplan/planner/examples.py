"""The plans that come with the package: one YAML file each, and the files that it reads."""

from __future__ import annotations

from pathlib import Path

from capplan.errors import CapplanError, did_you_mean
from capplan.results.catalogue import ExampleFacts
from capplan.specs.documents import read_yaml

_FOLDER = Path(__file__).resolve().parent.parent / "examples"
# What the files say here leads to the published schema; beside a copy it is what one prints.
_SCHEMA = "# yaml-language-server: $schema="
COPIED_SCHEMA = "plan.schema.json"


def examples() -> list[ExampleFacts]:
    """All, by name."""
    return [_facts(path) for path in sorted(_FOLDER.glob("*.yaml"))]


def example_files(name: str) -> tuple[str, dict[str, str]]:
    """A plan's text as a copy, and by file name the texts that it reads.

    Raises CapplanError for an unknown name.
    """
    known = sorted(path.stem for path in _FOLDER.glob("*.yaml"))
    if name not in known:
        hint = did_you_mean(name[:40], known) or "`capplan examples list` shows all"
        raise CapplanError(f"there is no example `{name[:40]}`", hint=hint)
    first, _, rest = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8").partition("\n")
    if not first.startswith(_SCHEMA):
        rest = f"{first}\n{rest}"
    others = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(_FOLDER.glob(f"{name}.*"))
        if path.suffix != ".yaml"
    }
    return f"{_SCHEMA}{COPIED_SCHEMA}\n{rest}", others


def _facts(path: Path) -> ExampleFacts:
    data = read_yaml(path).data
    return ExampleFacts(
        id=path.stem,
        title=data["title"],
        note=data["note"].strip(),
        model=data["model"],
        hardware=data["hardware"],
        variants=tuple(data.get("variants") or ()),
    )
