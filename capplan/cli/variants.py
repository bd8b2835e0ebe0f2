"""`capplan simulate` on a plan with `variants:`: all of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_INTERRUPTED, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.progress import Progress
from capplan.cli.simulation import ask
from capplan.errors import CapplanError
from capplan.planner.simulate import simulate_plan
from capplan.planner.variants import Simulated, compare
from capplan.render.screen import Screen
from capplan.results.variants import Change
from capplan.specs.plan import read_plan
from capplan.specs.plan_variants import BASE, Variant, variants_of

SCHEMA = "capplan.simulate-variants/1"


def has_variants(file: str) -> bool:
    if not file.strip() or "\0" in file:
        return False  # and whoever reads it says so
    plan, _ = read_plan(Path(file))
    return bool(plan.variants)


def answer_side_by_side(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Options are laid over the plan and over every variant. The exit code is the plan's own."""
    for name in ("records", "timeline", "plot"):
        if texts[name] is not None:
            raise CapplanError(
                f"--{name} is about one run, and this plan has variants",
                hint=f'add --variant NAME, say --variant "{BASE}"',
            )
    variants = variants_of(*read_plan(Path(texts["plan"])))
    inputs = Inputs()
    asked = [
        ask({**texts, "variant": variant.name}, Inputs() if index else inputs)
        for index, variant in enumerate(variants)
    ]
    simulated = []
    with Progress("simulating") as progress:
        for variant, one in zip(variants, asked, strict=True):
            answer = simulate_plan(one.question, progress)
            simulated.append(Simulated(variant.name, _note(variant), _changes(variant), answer))
            if answer.result.end == "interrupted":
                break
    result = compare(simulated)

    def screen() -> Screen:
        from capplan.render.variants import screen as render

        return render(result, asked[0].inputs, inputs.assumptions, environment().width)

    show(SCHEMA, asked[0].inputs, inputs.assumptions, result, screen, as_json=as_json, form=form)
    if simulated[-1].answer.result.end == "interrupted":
        return EXIT_INTERRUPTED
    return EXIT_FINE if result.feasible else EXIT_NO


def _note(variant: Variant) -> str | None:
    return variant.note if variant.changes else None


def _changes(variant: Variant) -> tuple[Change, ...]:
    return tuple(Change(name, _text(old), _text(new)) for name, old, new in variant.changes)


def _text(value: Any) -> str | None:
    """A value of the file as the file would have it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return f"{len(value)} entries"
    return str(value)
