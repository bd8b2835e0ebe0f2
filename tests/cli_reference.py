"""The commands and options of capplan, as its parser knows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import typer

from capplan.cli.app import app
from capplan.cli.explain import COMMANDS as EXPLAINED

_DEFAULT = re.compile(r"\s*\[default: (.*)\]\.?$", re.S)


class Option(NamedTuple):
    """``names`` as typed, the long one first; ``default`` in words, or nothing."""

    names: tuple[str, ...]
    metavar: str
    text: str
    default: str


class Argument(NamedTuple):
    metavar: str
    text: str


class Command(NamedTuple):
    """``path`` is what is typed after `capplan`; ``text`` the paragraphs of its help."""

    path: str
    text: str
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]


@cache
def reference() -> Mapping[str, Command]:
    """Every command that answers something, in the order of `capplan --help`."""
    # Groups follow the commands there too.
    return {command.path: command for command in _commands(typer.main.get_command(app), "")}


def known_options(path: str) -> set[str]:
    """The options that a command takes; `explain X` takes those of X."""
    commands = reference()
    if path == "explain":
        own = [option for name in EXPLAINED for option in commands[name].options]
    else:
        own = list(commands[path].options) if path in commands else []
    return {name for option in own for name in option.names} | {"--help"}


def top_level() -> list[str]:
    return list(dict.fromkeys(path.split()[0] for path in reference()))


def _commands(command: Any, path: str) -> Iterator[Command]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, child in inner.items():
            yield from _commands(child, f"{path} {name}".strip())
        return
    params = [param for param in command.params if "--help" not in param.opts]
    yield Command(
        path,
        "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n")),
        tuple(_argument(param) for param in params if param.param_type_name == "argument"),
        tuple(_option(param) for param in params if param.param_type_name == "option"),
    )


def _argument(param: Any) -> Argument:
    metavar = (param.metavar or param.name.upper()) + ("..." if param.nargs == -1 else "")
    return Argument(metavar if param.required else f"[{metavar}]", param.help or "")


def _option(param: Any) -> Option:
    names = sorted([*param.opts, *param.secondary_opts], key=lambda name: not name.startswith("--"))
    text = param.help or ""
    default = _DEFAULT.search(text)
    return Option(
        tuple(names),
        "" if param.is_flag else param.metavar or "",
        _without_stop(_DEFAULT.sub("", text)),
        default[1] if default else _switched(param),
    )


def _without_stop(text: str) -> str:
    """A row needs no full stop; three dots say that there is more."""
    return text if text.endswith("...") else text.removesuffix(".")


def _switched(param: Any) -> str:
    """Of a pair of switches: the one that holds."""
    if param.secondary_opts and isinstance(param.default, bool):
        return str((param.opts if param.default else param.secondary_opts)[0]).lstrip("-")
    return ""
