"""The options of `capplan explain`: those of the command that it explains, read by its parser."""

from __future__ import annotations

import typer

from capplan.cli.explain import COMMANDS, explain
from capplan.errors import CapplanError, did_you_mean


def explained(context: typer.Context) -> int:
    """Parse what stands after the command's name as that command would, and explain its answer."""
    arguments = list(context.args)
    if not arguments or arguments[0] in ("--help", "-h"):
        typer.echo(context.get_help())
        return 0
    name = arguments[0]
    if name.startswith("-"):
        raise CapplanError(
            f"explain: `{name[:40]}` stands before the command that is to be explained",
            hint=f"one of: {', '.join(COMMANDS)}; its options after it",
        )
    if name not in COMMANDS:
        hint = did_you_mean(name[:40], COMMANDS) or f"one of: {', '.join(COMMANDS)}"
        raise CapplanError(f"explain: `{name[:40]}` is not explained", hint=hint)
    group = context.find_root().command
    command = group.get_command(context, name)  # type: ignore[attr-defined]
    own = command.make_context(name, arguments[1:], parent=context, help_option_names=["--help"])
    texts = dict(own.params)
    form, as_json = texts.pop("form", None), bool(texts.pop("as_json", False))
    for option in ("plot", "emit"):
        if texts.get(option) is not None:
            raise CapplanError(
                f"--{option} belongs to `capplan {name}`, not to its explanation",
                hint=f"ask it without `explain`: capplan {name} ... --{option}",
            )
    return explain(name, texts, form, as_json)
