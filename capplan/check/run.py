"""Checking files: reading, resolving, judging; everything in the order of files and lines."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capplan.check.cases import Case
from capplan.check.config import Config
from capplan.check.deployment import Deployment
from capplan.check.documents import File, may_deploy, read_file, unreadable
from capplan.check.flags import Flag
from capplan.check.resolve import make_case
from capplan.check.rules.catalogue import RULES
from capplan.check.rules.rule import Remark, Rule
from capplan.check.rules.sizes import first_room
from capplan.check.shapes.registry import read_deployments
from capplan.check.source import Source
from capplan.check.values import HOLE, MASK, Value
from capplan.errors import CapplanError
from capplan.results.check import CheckedDeployment, Finding

MAX_SNIPPET = 160


@dataclass(frozen=True)
class CheckedFile:
    """One file: its findings, what it deploys, and why parts of it could not be read."""

    file: File
    cases: tuple[Case, ...]
    findings: tuple[Finding, ...]
    fault: CapplanError | None


def check_source(source: Source, config: Config, given: dict[str, str]) -> CheckedFile:
    """All findings of one file."""
    if not may_deploy(source.text):
        return CheckedFile(File(source, ()), (), (), None)
    file = read_file(source, config.overrides(given))
    deployments = read_deployments(file)
    try:
        cases = cases_of(deployments, config)
    except CapplanError as fault:
        return CheckedFile(file, (), (), fault)
    findings = [f for case in cases for f in judge(case)]
    findings.sort(key=by_place)
    return CheckedFile(file, tuple(cases), tuple(findings), unreadable(file))


def cases_of(deployments: Sequence[Deployment], config: Config) -> list[Case]:
    names = Counter(d.name for d in deployments)
    return [make_case(d, config, names[d.name]) for d in deployments]


def judge(case: Case, rules: Iterable[Rule] = RULES) -> list[Finding]:
    """What every rule says of a deployment."""
    found: list[Finding] = []
    for one in rules:
        for remark in one.check(case):
            found.append(_finding(case, one, remark))
    return found


def _finding(case: Case, one: Rule, remark: Remark) -> Finding:
    deployment = case.deployment
    at = remark.at if remark.at is not None else deployment.place
    location = at.place.location if isinstance(at, Flag) else at.location
    line, column = location.line or 1, location.column or 1
    text = _line(deployment.source, at, line)
    snippet = text if len(text) <= MAX_SNIPPET else text[: MAX_SNIPPET - 3] + "..."
    relative = case.config.relative(deployment.source.file)
    return Finding(
        rule=one.id,
        name=one.name,
        severity=one.severity,
        message=_clean(remark.message),
        arithmetic=tuple(_clean(step) for step in remark.arithmetic),
        fix=_clean(remark.fix) if remark.fix else None,
        assumed=tuple(_clean(note) for note in remark.assumed),
        file=deployment.source.file,
        line=line,
        column=column,
        snippet=_clean(snippet),
        deployment=_clean(deployment.name),
        fingerprint=fingerprint(one.id, relative, deployment.name, f"{text}\0{_value(at)}"),
    )


def _value(at: Flag | Value) -> str:
    return (at.text if isinstance(at, Flag) else at.chars) or ""


def _line(source: Source, at: Flag | Value, line: int) -> str:
    """The offending line; an option whose value is the next item of a list, with that."""
    text = " ".join(source.line_text(line).split())
    if isinstance(at, Flag) and at.value is not None and at.value.raw not in text:
        following = at.value.location.line
        if following == line + 1:
            text = f"{text} {' '.join(source.line_text(following).split())}"
    return text


def by_place(finding: Finding) -> tuple[int, int, str, str]:
    """A key: findings in the order of the lines of a file."""
    return finding.line, finding.column, finding.rule, finding.message


def fingerprint(rule: str, file: str, deployment: str, snippet: str) -> str:
    """Stays the same when lines move; changes when the offending line does."""
    return hashlib.sha256("\0".join((rule, file, deployment, snippet)).encode()).hexdigest()[:16]


def _clean(text: str) -> str:
    """One line that a terminal may see: files hold anything."""
    plain = re.sub(r"\s+", " ", text.replace(HOLE, "?").replace(MASK, "?"))
    return "".join(c if c.isprintable() else "?" for c in plain)


def summary_of(case: Case) -> CheckedDeployment:
    """What was understood of a deployment."""
    deployment = case.deployment
    gpus, replicas = case.gpus_per_replica, case.num_replicas
    total = gpus * replicas if gpus is not None and replicas is not None else None
    price = case.usd_per_gpu_hour
    return CheckedDeployment(
        file=deployment.source.file,
        line=deployment.location.line or 1,
        name=_clean(deployment.name),
        shape=deployment.shape,
        engine=deployment.engine,
        engine_version=deployment.version,
        model=case.model.id if case.model is not None else None,
        hardware=case.hardware_id,
        tp=case.tp,
        pp=case.pp,
        num_gpus_per_replica=gpus,
        num_replicas=replicas,
        num_gpus=total,
        usd_per_hour=total * price if total is not None and price is not None else None,
        kv_pool_tokens=_pool_tokens(case),
        calibration=case.own.file,
        unresolved=tuple(_clean(text) for text in case.unresolved),
    )


def _pool_tokens(case: Case) -> int | None:
    """Tokens of KV in requests of 1,024; None where memory is not known."""
    room = first_room(case)
    if room is None:
        return None
    pool = room.pool("likely")
    if pool.keeps_nothing or pool.available_bytes <= 0:
        return 0
    return 1024 * room.setup.engine.dp * pool.num_sequences(1024)
