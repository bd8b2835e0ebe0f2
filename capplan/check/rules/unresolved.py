"""What the files do not say, said once for each deployment."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import rooms


@rule("CP001", "unresolved", "warning", "something that decides the size is not in the files")
def unresolved(case: Case) -> Iterator[Remark]:
    """A value behind a template, a variable of the cluster or a local path is never guessed: what
    hangs on it is not checked. `.capplan.yaml` says it once (`models:`, `hardware:`, `values:`),
    `--set NAME=VALUE` for one run."""
    if not case.unresolved:
        return
    missing = []
    if case.model is None:
        missing.append("weights and heads")
    if not rooms(case):
        missing.append("memory and KV")
    what = f"; not checked: {', '.join(missing)}" if missing else ""
    yield Remark(
        f"{case.unresolved[0]}{what}",
        case.deployment.model or case.deployment.place,
        case.unresolved[1:],
        "map it in .capplan.yaml, or give it with --set",
    )


RULES = (unresolved,)
