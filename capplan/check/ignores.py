"""Findings that are accepted: by a comment beside the line, by the configuration, by a baseline.

A comment reads `# capplan: ignore CP004 reason="..." until=2027-01-01`, on the line or above it
(or where the server is started); `ignore-file` holds for the file. Kubernetes objects may carry
the annotation `capplan.dev/ignore: CP004=reason; CP012=reason`. A reason is asked for, and what
has run out or accepts nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from capplan.check.cases import Case
from capplan.check.config import Config
from capplan.check.source import Source
from capplan.results.check import Finding, Suppressed

_COMMENT = re.compile(
    r"(?:#|//)\s*capplan:\s*(ignore|ignore-file)\s+((?:CP\d{3}[,\s]*)+)(.*)", re.IGNORECASE
)
_FIELD = re.compile(r"(reason|until)\s*=\s*(\"[^\"]*\"|'[^']*'|.*?)(?=\s+(?:reason|until)\s*=|$)")
_ANNOTATION = re.compile(r"capplan\.dev/ignore[\"']?\s*:\s*(.+)")
_PAIR = re.compile(r"(CP\d{3})\s*=\s*([^;]+)")
MAX_COMMENTS = 500


@dataclass
class Ignore:
    """One acceptance: of these rules, where, why, and until when; ``used`` counts."""

    rules: tuple[str, ...]
    by: str
    line: int | None  # None: the whole file
    reason: str
    until: date | None
    fault: str | None = None
    used: int = 0
    source: Source | None = field(default=None, repr=False)


def comments(source: Source) -> list[Ignore]:
    """The comments and annotations of a file."""
    if "capplan" not in source.text:
        return []
    found: list[Ignore] = []
    for number in range(1, source.num_lines + 1):
        line = source.line_text(number)
        if "capplan" not in line or len(found) >= MAX_COMMENTS:
            continue
        if match := _COMMENT.search(line):
            whole = match[1].lower() == "ignore-file"
            found.append(_comment(source, number, whole, match[2], match[3]))
        elif match := _ANNOTATION.search(line):
            for pair in _PAIR.finditer(match[1].strip("\"' ")):
                found.append(
                    Ignore((pair[1],), "annotation", None, pair[2].strip(), None, None, 0, source)
                )
    return found


def _comment(source: Source, number: int, whole: bool, rules: str, rest: str) -> Ignore:
    fields = {m[1]: m[2].strip().strip("\"'") for m in _FIELD.finditer(rest.strip())}
    until, fault = None, None
    if "until" in fields:
        try:
            until = date.fromisoformat(fields["until"])
        except ValueError:
            fault = f"`until={fields['until'][:20]}` is not a date like 2027-01-01"
    reason = fields.get("reason", "")
    if not reason and fault is None:
        fault = "an ignore needs a reason: reason=..."
    names = tuple(re.findall(r"CP\d{3}", rules.upper()))
    return Ignore(names, "comment", None if whole else number, reason, until, fault, 0, source)


@dataclass(frozen=True)
class Sorted:
    """Findings that stand, those that were accepted, and what is to say of the acceptances."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    notes: tuple[tuple[str, Ignore, str], ...]  # (rule id, ignore, message)


def sort_out(
    findings: Sequence[Finding], cases: Sequence[Case], source: Source, config: Config, today: date
) -> Sorted:
    """Apply comments, annotations and the configuration to the findings of a file."""
    ignores = comments(source)
    starts = {case.deployment.name: case.deployment.location.line or 0 for case in cases}
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        match = _accepting(finding, ignores, starts.get(finding.deployment, 0), today)
        if match is not None:
            match.used += 1
            until = match.until.isoformat() if match.until is not None else None
            suppressed.append(Suppressed(finding, match.by, match.reason, until))
            continue
        rest = _configured(finding, config, today)
        if isinstance(rest, Suppressed):
            suppressed.append(rest)
        else:
            kept.append(rest)
    return Sorted(tuple(kept), tuple(suppressed), tuple(_notes(ignores, today)))


def _accepting(
    finding: Finding, ignores: Sequence[Ignore], start: int, today: date
) -> Ignore | None:
    for ignore in ignores:
        near = ignore.line is None or ignore.line in (
            finding.line,
            finding.line - 1,
            start,
            start - 1,
        )
        if finding.rule in ignore.rules and near and ignore.fault is None:
            if ignore.until is None or ignore.until >= today:
                return ignore
            ignore.used += 1  # it would, had it not run out
    return None


def _configured(finding: Finding, config: Config, today: date) -> Suppressed | Finding:
    """Accepted, or the finding with a word on the section that accepted it until it ran out."""
    relative = config.relative(finding.file)
    for section in config.spec.ignore:
        fits = fnmatchcase(relative, section.path) and fnmatchcase(
            finding.deployment, section.deployment
        )
        if section.rule != finding.rule or not fits:
            continue
        until = section.until.isoformat() if section.until is not None else None
        if section.until is None or section.until >= today:
            return Suppressed(finding, "config", section.reason, until)
        note = f"the ignore in {Path(config.file or '').name} ran out on {until}"
        finding = replace(finding, assumed=(*finding.assumed, note))
    return finding


def _notes(ignores: Sequence[Ignore], today: date) -> Iterator[tuple[str, Ignore, str]]:
    for ignore in ignores:
        names = ", ".join(ignore.rules)
        if ignore.fault is not None:
            yield "CP052", ignore, ignore.fault
        elif ignore.until is not None and ignore.until < today:
            yield "CP050", ignore, f"the ignore of {names} ran out on {ignore.until.isoformat()}"
        elif not ignore.used:
            yield "CP051", ignore, f"the ignore of {names} accepts nothing here"


def accept_baseline(
    findings: Sequence[Finding], known: Counter[str]
) -> tuple[list[Finding], list[Suppressed]]:
    """Findings that a baseline does not hold, each known one counted off once."""
    left = Counter(known)
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        if left[finding.fingerprint] > 0:
            left[finding.fingerprint] -= 1
            suppressed.append(Suppressed(finding, "baseline", "in the baseline", None))
        else:
            kept.append(finding)
    return kept, suppressed
