"""`capplan schema`: what files of ours may hold, as JSON Schema."""

from __future__ import annotations

import json

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.errors import CapplanError, did_you_mean

NAMES = ("plan", "config")


def answer(what: str) -> int:
    """Print a schema; raises CapplanError for another name."""
    from capplan.specs.plan_schema import config_schema, plan_schema

    if what not in NAMES:
        hint = did_you_mean(what[:40], NAMES) or f"one of: {', '.join(NAMES)}"
        raise CapplanError(f"there is no schema `{what[:40]}`", hint=hint)
    found = plan_schema() if what == "plan" else config_schema()
    environment().stdout.write(json.dumps(found, indent=2) + "\n")
    return EXIT_FINE
