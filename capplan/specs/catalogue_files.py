"""Where the catalogue's files lie, and their names: nothing is read, so that it costs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

_SUFFIX = ".yaml"
_PACKAGE = Path(__file__).resolve().parent.parent


def holds(test: Callable[[], bool]) -> bool:
    """Whether a path exists, is a folder, ...: one that the system refuses to look at is not."""
    try:
        return test()
    except (OSError, ValueError):
        return False


def own_folders() -> list[str]:
    """Those of CAPPLAN_PATH."""
    return [part for part in os.environ.get("CAPPLAN_PATH", "").split(os.pathsep) if part]


def folders(kind: str) -> Iterator[Path]:
    """Of `hardware` or `models`, in order."""
    for part in own_folders():
        yield Path(part) / kind
    bundled = _PACKAGE / "_catalog" / kind
    # A wheel carries the catalogue inside; a checkout has it beside the package.
    yield bundled if bundled.is_dir() else _PACKAGE.parent / kind


def files_of(kind: str) -> dict[str, Path]:
    """Stem to file; an earlier folder shadows a later one."""
    found: dict[str, Path] = {}
    for place in folders(kind):
        for name in _names_in(place):
            found.setdefault(name.removesuffix(_SUFFIX), place / name)
    return found


def _names_in(place: Path) -> list[str]:
    # As text: to make and sort a path of each name takes longer than to read one file.
    try:
        with os.scandir(place) as files:
            return sorted(file.name for file in files if file.name.endswith(_SUFFIX))
    except (OSError, ValueError):
        return []
