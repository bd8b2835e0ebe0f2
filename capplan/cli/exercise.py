"""`capplan simulate --exercise`: nothing to ask, every figure is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.planner.exercise import POSED, solve_exercise
from capplan.render.screen import Screen

SCHEMA = "capplan.exercise/1"
_OUTPUT = ("exercise", "as_json", "form")


def answer(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Solve it for every cap, print the table; raises CapplanError for any other option."""
    other = next((name for name, value in texts.items() if value and name not in _OUTPUT), None)
    if other is not None:
        raise CapplanError(
            f"--exercise goes with no other option, and --{other.replace('_', '-')} was given",
            hint="every figure of the exercise is fixed; leave one of the two out",
        )
    result = solve_exercise()

    def screen() -> Screen:
        from capplan.render.exercise import screen as render

        return render(result, POSED)

    show(SCHEMA, POSED, (), result, screen, as_json=as_json, form=form)
    return EXIT_FINE
