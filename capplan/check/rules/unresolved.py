"""What the files do not say, said once for each deployment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import rooms

# `$(MODEL)`, `${TP:-4}`, `$TP`, `{{ .Values.tp }}`, and `MODEL` = `...`
_VARIABLE = re.compile(r"`\$[({]?(\w+)[^`]*`|`\{\{-?\s*\.([\w.]+)\s*-?\}\}`|`(\w+)` = `")
_QUOTED = re.compile(r"`([^`]+)`")


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
        _settle(case, case.unresolved[0]),
    )


def _settle(case: Case, said: str) -> str:
    """The line of the configuration that would say it."""
    name = case.deployment.name
    variable = _VARIABLE.search(said)
    quoted = _QUOTED.search(said)
    if variable:
        stated = next(filter(None, variable.groups()))
        return f"say it with `--set {stated}=VALUE`, or under `values:` in .capplan.yaml"
    if said.startswith("model") and quoted:
        return f"map it in .capplan.yaml: `models: {{{quoted[1]}: MODEL}}`"
    if said.startswith("model"):
        return f"say it in .capplan.yaml: `deployments: {{{name}: {{model: MODEL}}}}`"
    if said.startswith("GPU type") and quoted:
        return f"map it in .capplan.yaml: `hardware: {{{quoted[1]}: ACCELERATOR}}`"
    if said.startswith("GPU type"):
        return f"say it in .capplan.yaml: `deployments: {{{name}: {{hardware: ACCELERATOR}}}}`"
    return "say it in .capplan.yaml, or with --set"


RULES = (unresolved,)
