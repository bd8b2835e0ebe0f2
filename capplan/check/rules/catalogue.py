"""All rules by id."""

from __future__ import annotations

from capplan.check.rules import (
    acceptances,
    batching,
    formats,
    memory,
    options,
    parallelism,
    plan,
    runtime,
    unresolved,
)
from capplan.check.rules.rule import Rule

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *unresolved.RULES,
            *memory.RULES,
            *parallelism.RULES,
            *batching.RULES,
            *formats.RULES,
            *runtime.RULES,
            *options.RULES,
            *plan.RULES,
            *acceptances.RULES,
        ),
        key=lambda rule: rule.id,
    )
)
BY_ID = {rule.id: rule for rule in RULES}
