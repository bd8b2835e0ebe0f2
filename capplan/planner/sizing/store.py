"""Simulated points on disk, by the content of what they depend on.

One file a point, written beside its place and moved there in one step: processes that run at the
same time see whole files or none. What cannot be read or written is simulated again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from capplan.planner.sizing.sample import Sample

KEPT_S = 30 * 86_400.0  # of another version's points


class Points(Protocol):
    """Where simulated points are kept, by name."""

    def get(self, name: str) -> Sample | None: ...

    def put(self, name: str, sample: Sample) -> None: ...


class NoPoints:
    """Nothing is kept."""

    def get(self, name: str) -> Sample | None:  # noqa: ARG002
        return None

    def put(self, name: str, sample: Sample) -> None:
        pass


class PointFiles:
    """``folder`` holds a folder for each version of the program and its data."""

    def __init__(self, folder: Path, version: str) -> None:
        self._root = folder
        self._folder = folder / version

    def get(self, name: str) -> Sample | None:
        try:
            return Sample.decoded((self._folder / name).read_bytes())
        except (OSError, ValueError):
            return None

    def put(self, name: str, sample: Sample) -> None:
        with contextlib.suppress(OSError):
            self._put(name, sample.encoded())

    def _put(self, name: str, data: bytes) -> None:
        if not self._folder.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._forget_old()
        handle, written = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(written).replace(self._folder / name)
        except BaseException:
            Path(written).unlink(missing_ok=True)
            raise

    def _forget_old(self) -> None:
        """Points of versions that have not been used for a month."""
        before = time.time() - KEPT_S
        for other in self._root.iterdir():
            if other != self._folder and other.is_dir() and other.stat().st_mtime < before:
                shutil.rmtree(other, ignore_errors=True)


def name_of(parts: Iterable[str]) -> str:
    """A file name for everything that a point depends on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:40]


def version_of(package: Path, version: str) -> str:
    """Changes with every file of the program and of its data, without reading them."""
    lines = [version]
    for folder, names, files in os.walk(package):
        names[:] = sorted(name for name in names if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            found = Path(folder, name).stat()
            lines.append(f"{folder}/{name} {found.st_size} {found.st_mtime_ns}")
    return name_of(lines)[:16]
