"""Which files of a folder may deploy something: by name, in order, within bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from capplan.errors import CapplanError, Location

_SKIPPED = {
    ".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".terraform", ".tox",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", "dist", "build",
}  # fmt: skip
_NAMES = re.compile(
    r"\.(?:ya?ml|json|tpl|tmpl|gotmpl|j2|sh|bash|service)$|^(?:Dockerfile|Containerfile)"
    r"|(?:dockerfile|containerfile)$",
    re.IGNORECASE,
)
# Locks and schemas are long and deploy nothing.
_NOT_THESE = re.compile(
    r"(?:^|[-.])(?:package-lock|composer\.lock|schema|tsconfig)\b.*\.json$|^\.pre-commit|^\.capplan\.ya?ml$|^_.*\.tpl$"
)
MAX_FILES = 100_000


def find_files(paths: list[str]) -> list[tuple[Path, bool]]:
    """Files to read, each once; the flag says whether it was named itself.

    Raises CapplanError for a path that does not exist.
    """
    found: dict[Path, bool] = {}
    for text in paths:
        path = Path(text)
        if path.is_dir():
            for inner in _walk(path):
                found.setdefault(inner, False)
                if len(found) > MAX_FILES:
                    raise CapplanError(f"more than {MAX_FILES:,} files", hint="name folders below")
        elif path.exists():
            found[path] = True
        else:
            raise CapplanError(
                "there is no such file", location=Location(text), hint="check the path"
            )
    return list(found.items())


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(files):
            path = Path(place) / name
            if _NAMES.search(name) and not _NOT_THESE.search(name) and not path.is_symlink():
                yield path
