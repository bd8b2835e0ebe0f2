"""The published JSON Schemas: the files of docs/schemas, which a wheel carries inside.

`plan` and `config` are files that people write; the others are outputs of `--json`, called
`capplan.gpus/1` by themselves and `gpus` for short.
"""

from __future__ import annotations

from pathlib import Path

from capplan.errors import CapplanError, did_you_mean

_PACKAGE = Path(__file__).resolve().parent.parent
_INPUTS = {
    "plan": "what plan.yaml may hold",
    "config": "what .capplan.yaml may hold",
}
_INPUT_SUFFIX = ".schema"


def schema_names() -> dict[str, str]:
    """What can be printed, and what it describes: inputs first, then outputs by name."""
    outputs = sorted(path.stem for path in _folder().glob("capplan.*.json"))
    return _INPUTS | {_output_name(stem): "output of --json" for stem in outputs}


def schema_text(name: str) -> str:
    """The text of a schema, by its name or its short one; raises CapplanError for another."""
    known = schema_names()
    short = {full.partition(".")[2].partition("/")[0]: full for full in known if "/" in full}
    full = name if name in known else short.get(name)
    if full is None:
        hint = did_you_mean(name[:40], [*known, *short]) or "`capplan schema` lists all"
        raise CapplanError(f"there is no schema `{name[:40]}`", hint=hint)
    stem = f"{full}{_INPUT_SUFFIX}" if full in _INPUTS else full.replace("/", "-")
    return (_folder() / f"{stem}.json").read_text(encoding="utf-8")


def _folder() -> Path:
    bundled = _PACKAGE / "_schemas"
    return bundled if bundled.is_dir() else _PACKAGE.parent / "docs" / "schemas"


def _output_name(stem: str) -> str:
    """
    >>> _output_name("capplan.simulate-variants-1")
    'capplan.simulate-variants/1'
    """
    name, _, version = stem.rpartition("-")
    return f"{name}/{version}"
