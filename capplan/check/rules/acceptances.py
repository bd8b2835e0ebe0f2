"""Rules about ignores themselves; they are applied where ignores are (check/ignores.py)."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule


@rule("CP050", "ignore-expired", "warning", "an ignore whose date has passed")
def ignore_expired(case: Case) -> Iterator[Remark]:
    """What was accepted until a date is to be looked at again: the finding is back."""
    del case
    return iter(())


@rule("CP051", "ignore-unused", "info", "an ignore that accepts nothing")
def ignore_unused(case: Case) -> Iterator[Remark]:
    """A leftover of what has been fixed would silently accept the next fault of that kind."""
    del case
    return iter(())


@rule(
    "CP052", "ignore-without-reason", "warning", "an ignore without a reason, or with a wrong date"
)
def ignore_without_reason(case: Case) -> Iterator[Remark]:
    """Whoever reads the file next cannot tell a decision from a habit. Such an ignore accepts
    nothing until it says why."""
    del case
    return iter(())


RULES = (ignore_expired, ignore_unused, ignore_without_reason)
