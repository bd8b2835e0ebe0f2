"""`capplan simulate`: from options and a plan to what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.cli.exit_codes import EXIT_FINE, EXIT_INTERRUPTED, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.progress import Progress
from capplan.cli.simulation import ask
from capplan.planner.simulate import simulate_plan
from capplan.render.screen import Screen

SCHEMA = "capplan.simulate/1"


def answer(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Simulate, print, and return the exit code: 1 where a limit is missed or nobody can tell."""
    if texts["plan"] is not None and texts["variant"] is None:
        from capplan.cli.variants import answer_side_by_side, has_variants

        if has_variants(texts["plan"]):
            return answer_side_by_side(texts, as_json, form)
    inputs = Inputs()
    asked = ask(texts, inputs)
    with Progress("simulating") as progress:
        found = simulate_plan(asked.question, progress)

    def screen() -> Screen:
        from capplan.render.simulate import screen as render

        return render(found.result, asked.inputs, inputs.assumptions)

    show(SCHEMA, asked.inputs, inputs.assumptions, found.result, screen, as_json=as_json, form=form)
    if found.result.end == "interrupted":
        return EXIT_INTERRUPTED
    return EXIT_FINE if found.result.feasible else EXIT_NO
