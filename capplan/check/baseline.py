"""A baseline: today's findings, accepted so that only new ones fail a build."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from capplan.errors import UNWRITABLE, CapplanError, Location
from capplan.results.check import Finding
from capplan.specs.documents import read_text

SCHEMA = "capplan.check-baseline/1"


def write_baseline(path: Path, findings: Iterable[Finding]) -> int:
    """Write the fingerprints; the number of findings."""
    entries = [
        {"fingerprint": f.fingerprint, "rule": f.rule, "file": f.file, "message": f.message}
        for f in findings
    ]
    content = {"schema": SCHEMA, "findings": entries}
    try:
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CapplanError(
            f"the baseline cannot be written: {reason}",
            location=Location(str(path)),
            hint=UNWRITABLE,
        ) from None
    return len(entries)


def read_baseline(path: Path) -> Counter[str]:
    """Fingerprints and how often each stands; raises CapplanError for another kind of file."""
    text = read_text(path, what="a baseline")
    try:
        content = json.loads(text)
        if content["schema"] != SCHEMA:
            raise ValueError(content["schema"])
        return Counter(str(entry["fingerprint"]) for entry in content["findings"])
    except (ValueError, KeyError, TypeError, RecursionError):
        hint = "write one with --write-baseline"
        raise CapplanError("this is no baseline", location=Location(str(path)), hint=hint) from None
