"""Files that a command writes beside its answer: new ones only, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from capplan.errors import UNWRITABLE, CapplanError, Location


def check_new_file(
    name: str, option: str, suffixes: Sequence[str], *, hint: str | None = None
) -> None:
    """Refuse, before any work, a file that could not be written; nothing is overwritten."""
    path, location = Path(name), Location(name)
    if "\0" in name or path.suffix.lower() not in suffixes:
        raise CapplanError(
            f"{option} writes {' and '.join(suffixes)} files", location=location, hint=hint
        )
    try:
        if path.exists():
            raise CapplanError(
                "the file exists", location=location, hint="remove it, or give another name"
            )
        check_folder(path)
    except OSError as error:
        raise CapplanError(
            f"cannot be written: {error.strerror}", location=location, hint=UNWRITABLE
        ) from None


def check_folder(path: Path) -> None:
    """Refuse, before any work, a file in a folder that is not there."""
    if not path.parent.is_dir():
        raise CapplanError(
            "there is no such folder",
            location=Location(str(path.parent)),
            hint="make it first, or name a file in another one",
        )


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A new file to write text to; CapplanError where that fails."""
    try:
        with path.open("x", encoding="utf-8", newline="") as stream:
            yield stream
    except OSError as error:
        raise CapplanError(
            f"cannot be written: {error.strerror}", location=Location(str(path)), hint=UNWRITABLE
        ) from None
