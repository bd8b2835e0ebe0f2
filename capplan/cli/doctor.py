"""`capplan doctor`: is this installation whole?"""

from __future__ import annotations

from capplan.cli.cache import cache_folder
from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.output import show
from capplan.planner.doctor import examine
from capplan.render.doctor import screen


def answer(as_json: bool, form: str) -> int:
    """Print what is found; 1 where a check does not hold."""
    folder = cache_folder()
    result = examine(str(folder) if folder is not None and folder.exists() else None)
    show(
        "capplan.doctor/1", {}, (), result, lambda: screen(result), as_json=as_json, form=form
    )  # fmt: skip
    return EXIT_FINE if result.healthy else EXIT_NO
