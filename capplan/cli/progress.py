"""A line on stderr while work goes on: only for people, and only where it takes a while."""

from __future__ import annotations

import time
from types import TracebackType

from capplan.cli.environment import environment

PATIENCE_S = 0.5
_EVERY_S = 0.1
_BAR = 30


class Progress:
    """`with Progress("simulating") as progress: ... progress(done, of)`; gone when it ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._stream = environment().stderr
        isatty = getattr(self._stream, "isatty", None)
        self._shown = bool(isatty and isatty())
        self._drawn = False
        self._next_s = time.monotonic() + PATIENCE_S

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, of: int | None) -> None:
        if not self._shown or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _EVERY_S
        self._drawn = True
        count = f"{done:,}"
        if of:
            filled = min(_BAR, _BAR * done // of)
            count = f"[{'#' * filled}{'.' * (_BAR - filled)}] {done:,} of {of:,}"
        self._stream.write(f"\r{self._what} {count}\x1b[K")
        self._stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
