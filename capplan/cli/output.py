"""Where a screen goes: JSON, tab-separated, or drawn for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from capplan.cli.environment import environment
from capplan.errors import CapplanError, did_you_mean

if TYPE_CHECKING:  # `capplan --help` shows no screen
    from capplan.render.screen import Screen
    from capplan.results.assumptions import Assumption

_FORMATS = ("auto", "table", "tsv")


def output_format(text: str | None) -> str:
    """The format asked for; raises CapplanError for an unknown one."""
    if text is not None and text not in _FORMATS:
        hint = did_you_mean(text[:40], _FORMATS) or "one of: auto, table, tsv; or --json"
        raise CapplanError(f"--format: `{text[:40]}` is not a format", hint=hint)
    return text or "auto"


def show(
    schema: str,
    inputs: Any,
    assumptions: Sequence[Assumption],
    result: Any,
    screen: Callable[[], Screen],
    *,
    as_json: bool,
    form: str,
) -> None:
    """Write the answer to stdout; the screen is only made where it is shown."""
    env = environment()
    if as_json:
        from capplan.render import json_output

        env.stdout.write(json_output.document(schema, inputs, assumptions, result) + "\n")
    elif form == "table" or (form == "auto" and env.is_terminal):
        from capplan.render import terminal  # rich is only needed for people

        terminal.draw(screen(), env.stdout, env.width, colour=env.colour)
    else:
        from capplan.render import tsv

        tsv.write(screen(), env.stdout)
