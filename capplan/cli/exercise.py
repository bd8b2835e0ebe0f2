"""`capplan simulate --exercise`: nothing to ask, every figure is given."""

from __future__ import annotations

from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.output import show
from capplan.planner.exercise import POSED, solve_exercise
from capplan.render.screen import Screen

SCHEMA = "capplan.exercise/1"


def answer(as_json: bool, form: str) -> int:
    """Solve it for every cap, print the table."""
    result = solve_exercise()

    def screen() -> Screen:
        from capplan.render.exercise import screen as render

        return render(result, POSED)

    show(SCHEMA, POSED, (), result, screen, as_json=as_json, form=form)
    return EXIT_FINE
