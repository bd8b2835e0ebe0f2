"""Shell completion: typer's scripts, and names from file names alone, as a person is waiting.

The shell calls `capplan` with `_CAPPLAN_COMPLETE` set. typer registers its shells only where it
adds options of its own, which would make every start slower (benchmarks/startup.py).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

from capplan.errors import CapplanError

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_CAPPLAN_COMPLETE"


def is_completing() -> bool:
    return _VARIABLE in os.environ


def prepare() -> None:
    """Make typer answer the shell's question; the process ends with that."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    # typer would take `[default: 100]` in a help text for markup of rich, and drop it.
    sys.modules["rich"] = None  # type: ignore[assignment]


def script(shell: str) -> str:
    """What a shell evaluates; raises CapplanError for another shell."""
    if shell not in SHELLS:
        hint = f"one of: {', '.join(SHELLS)}"
        raise CapplanError(f"--show-completion: no completion for `{shell[:40]}`", hint=hint)
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    return str(get_completion_script(prog_name="capplan", complete_var=_VARIABLE, shell=shell))


def choices(*words: str) -> Callable[[str], list[str]]:
    """Of an option that takes one of these."""
    return lambda incomplete: _beginning(list(words), incomplete)


def choices_of(metavar: str) -> Callable[[str], list[str]] | None:
    """Of an option whose `auto|table|tsv` says what it takes; capitals stand for anything."""
    words = metavar.split("|")
    plain = [word for word in words if re.fullmatch(r"[a-z][a-z0-9-]*", word)]
    return choices(*plain) if len(words) > 1 and plain else None


def model_names(incomplete: str) -> list[str]:
    return _catalogue("models", incomplete)


def hardware_names(incomplete: str) -> list[str]:
    """Several with commas: the last is completed."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _catalogue("hardware", last)]


def example_names(incomplete: str) -> list[str]:
    from pathlib import Path

    folder = Path(__file__).resolve().parent.parent / "examples"
    return _beginning(sorted(path.stem for path in folder.glob("*.yaml")), incomplete)


def router_policies(incomplete: str) -> list[str]:
    from capplan.specs.clients import POLICIES

    return _beginning(list(POLICIES), incomplete)


def number_formats(incomplete: str) -> list[str]:
    from capplan.formulas.number_formats import FORMATS

    return _beginning(list(FORMATS), incomplete)


def rule_ids(incomplete: str) -> list[str]:
    from capplan.check.rules.catalogue import RULES

    return _beginning([rule.id for rule in RULES], incomplete)


def schema_names(incomplete: str) -> list[str]:
    from capplan.specs.schemas import schema_names as known

    return _beginning(list(known()), incomplete)


def _catalogue(kind: str, incomplete: str) -> list[str]:
    from capplan.specs.catalogue_files import files_of

    return _beginning(sorted(files_of(kind)), incomplete)


def _beginning(names: list[str], text: str) -> list[str]:
    return [name for name in names if name.startswith(text)]
