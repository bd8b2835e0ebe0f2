"""Where results are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """Of this user, by the XDG base directories; None where nobody has a home."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(given) if given else Path.home() / ".cache") / "capplan"
    except RuntimeError:
        return None
