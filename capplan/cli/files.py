"""Paths that a user gives: read as they are, and nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

from capplan.errors import UNWRITABLE, CapplanError, Location

_LONGEST = 4096


def checked_path(name: str) -> Path:
    """Raises CapplanError for what cannot be a path."""
    if not name.strip() or len(name) > _LONGEST or "\0" in name:
        raise CapplanError(f"`{name[:40]!a}` is not a name or a path")
    return Path(name)


def write_new(path: Path, text: str) -> None:
    """Raises CapplanError where the file exists or cannot be written."""
    location = Location(str(path))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        hint = "remove it, or give another name"
        raise CapplanError("the file exists", location=location, hint=hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CapplanError(
            f"the file cannot be written: {reason}", location=location, hint=UNWRITABLE
        ) from None
