"""Running a command line in an environment: the exit code, and errors in one voice."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import typer

from capplan.cli.environment import Environment, from_process
from capplan.errors import CapplanError

EXIT_FINE, EXIT_NO, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 2, 130

_environment: ContextVar[Environment] = ContextVar("environment")


def environment() -> Environment:
    """The environment of the command that is running."""
    return _environment.get()


def run(arguments: Sequence[str], env: Environment | None = None) -> int:
    """Run one command line; returns its exit code and never raises for bad input.

    0: answered; 1: answered, and the answer is no; 2: could not answer; 130: interrupted.
    """
    env = env or from_process()
    token = _environment.set(env)
    try:
        return _run(list(arguments), env)
    finally:
        _environment.reset(token)


def _run(arguments: list[str], env: Environment) -> int:
    from capplan.cli.app import app

    as_json = "--json" in arguments
    try:
        code = app(arguments, prog_name="capplan", standalone_mode=False)
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
    except BrokenPipeError:
        # The reader has gone (`| head`); keep the interpreter's last flush from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FINE
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _report(env, _usage_error(error, arguments), as_json)
        return EXIT_ERROR


def _usage_error(error: Any, arguments: list[str]) -> CapplanError:
    """typer's usage errors in our words; it does not export their classes."""
    message = " ".join(str(error.format_message()).split()).rstrip(".")
    command = next((word for word in arguments if not word.startswith("-")), "")
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", None) or f"capplan {command}".strip()
    return CapplanError(
        message[:1].lower() + message[1:400], hint=f"see `{path} --help`"
    )


def _report(env: Environment, error: CapplanError, as_json: bool) -> None:
    if as_json:
        location = error.location
        content = {
            "error": {
                "message": error.message,
                "file": location.file if location else None,
                "line": location.line if location else None,
                "column": location.column if location else None,
                "hint": error.hint,
            }
        }
        env.stderr.write(json.dumps(content, ensure_ascii=False) + "\n")
        return
    lines = [f"error: {error.message}"]
    if error.location is not None:
        lines.append(f"  --> {error.location}")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    env.stderr.write("\n".join(lines) + "\n")
