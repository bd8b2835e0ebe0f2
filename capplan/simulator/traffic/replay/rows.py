"""A row of a recorded file, and what is wrong with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from capplan.errors import CapplanError, Location, one_line
from capplan.specs.lengths import MAX_TOKENS

SKIP_HINT = "correct the row, or leave out such rows with `skip_bad_rows` (--skip-bad-rows)"


class Row(NamedTuple):
    """One request as it was recorded; 0 outputs where the plan says them, not the file."""

    line: int
    time_s: float | None  # on the file's own clock
    prompt_tokens: int
    output_tokens: int
    hash_ids: tuple[int | str, ...] = ()
    session: str | None = None


class RowError(Exception):
    """A row that is no request. `reason` is what skipped rows are counted by."""

    def __init__(self, reason: str, message: str, hint: str = SKIP_HINT) -> None:
        super().__init__(message)
        self.reason, self.message, self.hint = reason, message, hint
        self.line = 0

    def at(self, line: int) -> RowError:
        self.line = line
        return self


def checked(
    rows: Iterable[Row | RowError], file: str, skip: bool, skipped: Counter[str]
) -> Iterator[Row]:
    """The good rows. Raises CapplanError at the first bad one, or at the end if none was good."""
    good = 0
    for row in rows:
        if isinstance(row, Row):
            good += 1
            yield row
        elif skip:
            skipped[row.reason] += 1
        else:
            raise CapplanError(row.message, hint=row.hint, location=Location(file, row.line))
    if not good:
        raise CapplanError(
            nothing_left(skipped), location=Location(file), hint="is this a trace of requests?"
        )


def nothing_left(skipped: Counter[str]) -> str:
    """Why a file has no usable row."""
    if not skipped:
        return "the file holds no request"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.most_common(3))
    return f"the file holds no usable request ({reasons})"


def tokens_of(value: object, field: str, *, output: bool = False) -> int:
    """A length in tokens; a whole number that was written as `374.0` is one. Raises RowError."""
    try:
        tokens = int(value)  # type: ignore[call-overload]
        whole = not isinstance(value, bool) and (tokens == value or isinstance(value, str))
    except (TypeError, ValueError, OverflowError):
        tokens, whole = _of_float(value, field)
    if not whole:
        raise RowError("not a whole number", f"`{field}` is {quoted(value)}, not a whole number")
    if 0 < tokens <= MAX_TOKENS:
        return int(tokens)
    if tokens == 0:
        meaning = " (in BurstGPT, a request that failed)" if output else ""
        kind = "output" if output else "prompt"
        raise RowError(f"without {kind} tokens", f"`{field}` is 0: no {kind} tokens{meaning}")
    problem = "negative" if tokens < 0 else f"more than {MAX_TOKENS:,} tokens"
    raise RowError("length out of range", f"`{field}` is {quoted(value)}: {problem}")


def _of_float(value: object, field: str) -> tuple[int, bool]:
    try:
        number = float(value) if isinstance(value, str) else float("nan")
        return int(number), number == int(number)
    except (ValueError, OverflowError):
        missing = value is None or value == ""
        reason = "without a value" if missing else "not a number"
        message = (
            f"`{field}` is empty" if missing else f"`{field}` is {quoted(value)}, not a number"
        )
        raise RowError(reason, message) from None


def quoted(value: object) -> str:
    """A value as an error shows it."""
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    return f"`{one_line(str(value), 40)}`"
