"""Running a command line in an environment: the exit code, and errors in one voice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

import typer

from capplan.cli import completion
from capplan.cli.environment import Environment, from_process, running_in
from capplan.cli.exit_codes import EXIT_ERROR, EXIT_FINE, EXIT_INTERRUPTED
from capplan.cli.root import new_app
from capplan.errors import CapplanError, did_you_mean, one_line

MAX_MESSAGE = 500
app: Any = None  # built already, by somebody who runs many lines
WELCOME = """\
This model, this traffic, this SLO: how many of which GPU, and why.

  capplan gpus --qps 100 --slo-ttft 400ms   how many GPUs a model needs
  capplan check .                           review the deployments of a repository
  capplan examples list                     plans to simulate and to start from

`capplan --help` lists every command, `capplan doctor` checks the installation.
"""


def run(arguments: Sequence[str], env: Environment | None = None) -> int:
    """Run one command line; returns its exit code and never raises for bad input."""
    env = env or from_process()
    with running_in(env):
        return _run(list(arguments), env)


def _run(arguments: list[str], env: Environment) -> int:
    as_json = "--json" in arguments
    try:
        if completion.is_completing():
            completion.prepare()
        elif not arguments:
            env.stdout.write(WELCOME)
            return EXIT_FINE
        # typer prints help to sys.stdout, wherever that leads.
        with redirect_stdout(env.stdout):
            code = _app_for(arguments)(arguments, prog_name="capplan", standalone_mode=False)
        env.stdout.flush()
        return code if isinstance(code, int) else EXIT_FINE
    except CapplanError as error:
        _report(env, error, as_json)
        return EXIT_ERROR
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        env.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader has gone (`| head`); typer makes an exit of it.
        _drop_stdout()
        return EXIT_FINE
    except OSError as error:
        # A full disk; files that are read or drawn have errors of their own.
        _drop_stdout()
        reason = error.strerror or str(error)
        _report(env, CapplanError(f"the answer cannot be written: {reason}"), as_json)
        return EXIT_ERROR
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _report(env, _usage_error(error, arguments), as_json)
        return EXIT_ERROR


def _app_for(arguments: list[str]) -> Any:
    """The application with the one command that is asked for, where it is plain which.

    typer builds every command's parser before it looks which one is meant: that took longer than
    reading the catalogue.
    """
    if app is not None:
        return app
    first = arguments[0] if arguments else ""
    slim = new_app()
    if first in ("gpus", "roofline", "kv"):  # the other commands' options are not even read
        from capplan.cli.commands import planning

        slim.command()(getattr(planning, first))
        return slim
    from capplan.cli.app import app as whole

    if first == "explain":  # parses what follows as the command that it names
        return whole
    slim.registered_commands = [
        info for info in whole.registered_commands if _name_of(info) == first
    ]
    return slim if slim.registered_commands else whole


def _name_of(info: Any) -> str:
    return str(info.name or getattr(info.callback, "__name__", "").replace("_", "-"))


def _drop_stdout() -> None:
    """Keep the interpreter's last flush from complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _usage_error(error: Any, arguments: list[str]) -> CapplanError:
    """typer's usage errors in our words; it does not export their classes."""
    message = " ".join(str(error.format_message()).split()).rstrip(".").replace("'", "`")
    command = next((word for word in arguments if not word.startswith("-")), "")
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", None) or f"capplan {command}".strip()
    hint = f"see `{path} --help`"
    inner = getattr(getattr(context, "command", None), "commands", None)
    if hasattr(error, "possibilities"):  # an unknown option
        message = f"no such option `{error.option_name}`"
        near = did_you_mean(error.option_name[:100], error.possibilities or ())
        hint = f"{near} {hint}" if near else hint
    elif inner is not None:
        message, hint = _no_command(path, message, inner)
    return CapplanError(message[:1].lower() + message[1:], hint=hint)


def _no_command(path: str, message: str, known: Iterable[str]) -> tuple[str, str]:
    """A group without a command, or with one that it does not have."""
    names = list(known)
    some = f"one of: {', '.join(names)}"
    typed = re.match(r"No such command `(.*?)`", message)
    if typed is None:
        return f"`{path}` needs a command", some
    near = did_you_mean(typed[1][:100], names)
    return f"no such command `{typed[1]}`", f"{near} `{path} --help` lists all" if near else some


def _report(env: Environment, error: CapplanError, as_json: bool) -> None:
    # Messages quote what was given: names and texts of any length, and control sequences.
    message = one_line(error.message, MAX_MESSAGE)
    hint = one_line(error.hint, MAX_MESSAGE) if error.hint else None
    location = error.location and replace(
        error.location, file=one_line(error.location.file, MAX_MESSAGE)
    )
    if as_json:
        import json

        content = {
            "error": {
                "message": message,
                "file": location.file if location else None,
                "line": location.line if location else None,
                "column": location.column if location else None,
                "hint": hint,
            }
        }
        env.stderr.write(json.dumps(content, ensure_ascii=False) + "\n")
        return
    lines = [f"error: {message}"]
    if location is not None:
        lines.append(f"  --> {location}")
    if hint:
        lines.append(f"hint: {hint}")
    env.stderr.write("\n".join(lines) + "\n")
