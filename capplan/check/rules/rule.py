"""What a rule is, and what it says of a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capplan.check.cases import Case
from capplan.check.flags import Flag
from capplan.check.values import Value


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule has to say: the message, where, the steps with their numbers, one way out."""

    message: str
    at: Flag | Value | None = None  # None: where the server is started
    arithmetic: tuple[str, ...] = ()
    fix: str | None = None
    assumed: tuple[str, ...] = ()


Check = Callable[[Case], Iterator[Remark]]


@dataclass(frozen=True, slots=True)
class Rule:
    """``severity``: an error is a fact, a warning a judgement, info a note."""

    id: str
    name: str
    severity: str
    summary: str
    why: str
    check: Check


def rule(id: str, name: str, severity: str, summary: str) -> Callable[[Check], Rule]:
    """Make a rule of a function; its docstring says why."""

    def made(check: Check) -> Rule:
        why = " ".join((check.__doc__ or "").split())
        return Rule(id, name, severity, summary, why, check)

    return made
