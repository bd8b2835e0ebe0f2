"""The outside world of one run: streams, width, and whether a person is looking."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

DEFAULT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Environment:
    """``is_terminal`` and ``colour`` speak of stdout."""

    stdout: TextIO
    stderr: TextIO
    width: int
    is_terminal: bool
    colour: bool


def from_process() -> Environment:
    """The environment of this process; NO_COLOR and COLUMNS are respected."""
    # A stream that the caller closed is None.
    stdout, stderr = (stream or io.StringIO() for stream in (sys.stdout, sys.stderr))
    for stream in (stdout, stderr):
        # A terminal that cannot show a tick mark gets a question mark, not a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    terminal = stdout.isatty()
    dumb = os.environ.get("TERM") == "dumb"
    return Environment(
        stdout=stdout,
        stderr=stderr,
        width=shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns,
        is_terminal=terminal,
        colour=terminal and not dumb and not os.environ.get("NO_COLOR"),
    )


_current: ContextVar[Environment] = ContextVar("environment")


def environment() -> Environment:
    """The environment of the command that is running."""
    return _current.get()


@contextmanager
def running_in(env: Environment) -> Iterator[None]:
    """Make ``env`` the environment of whatever runs inside."""
    token = _current.set(env)
    try:
        yield
    finally:
        _current.reset(token)
