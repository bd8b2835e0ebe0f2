"""`capplan schema`: what files and outputs of ours may hold, as JSON Schema."""

from __future__ import annotations

from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.specs.schemas import schema_names, schema_text


def answer(name: str | None) -> int:
    """Print one schema, or the names of all; raises CapplanError for an unknown name."""
    env = environment()
    if name is not None:
        env.stdout.write(schema_text(name))
        return EXIT_FINE
    known = schema_names()
    width = max(map(len, known)) + 2 if env.is_terminal else 0
    for full, what in known.items():
        env.stdout.write(f"{full:{width}}{what}\n" if width else f"{full}\t{what}\n")
    return EXIT_FINE
