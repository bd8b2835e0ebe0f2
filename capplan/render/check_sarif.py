"""SARIF 2.1.0, as code scanning reads it: rules, places, stable fingerprints, suppressions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from capplan.results.check import CheckResult, Finding, Suppressed

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(result: CheckResult, version: str, docs: str) -> str:
    """One run; ``docs`` is where the rules are explained."""
    index = {rule.id: i for i, rule in enumerate(result.rules)}
    rules = [
        {
            "id": rule.id,
            "name": _pascal(rule.name),
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule.why},
            "helpUri": f"{docs}#{rule.id.lower()}",
            "help": {"text": rule.why},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            "properties": {"tags": ["capacity", rule.severity]},
        }
        for rule in result.rules
    ]
    seen: Counter[str] = Counter()
    results = [_result(finding, index, seen) for finding in result.findings]
    results += [_accepted(entry, index, seen) for entry in result.suppressed]
    driver = {
        "name": "capplan",
        "version": version,
        "informationUri": docs.partition("/blob/")[0],
        "rules": rules,
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "capplan/check/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the repository's root"}}},
        "invocations": [{"executionSuccessful": True}],
        "results": results,
    }
    content = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _result(finding: Finding, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    seen[finding.fingerprint] += 1
    # The name under which code scanning looks for it; alerts stay when lines move.
    fingerprints = {"primaryLocationLineHash": f"{finding.fingerprint}:{seen[finding.fingerprint]}"}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": full_message(finding)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "SRCROOT"},
                    "region": {
                        "startLine": finding.line,
                        "startColumn": finding.column,
                        "snippet": {"text": finding.snippet},
                    },
                },
                "logicalLocations": [{"name": finding.deployment or "file", "kind": "resource"}],
            }
        ],
        "partialFingerprints": fingerprints,
    }


def _accepted(entry: Suppressed, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    found = _result(entry.finding, index, seen)
    kind = "inSource" if entry.by in ("comment", "annotation") else "external"
    found["suppressions"] = [{"kind": kind, "justification": entry.reason}]
    return found


def full_message(finding: Finding) -> str:
    """Message, steps and way out in one text."""
    parts = [finding.message, *finding.arithmetic]
    if finding.fix:
        parts.append(f"fix: {finding.fix}")
    parts += [f"assumed: {note}" for note in finding.assumed]
    return "\n".join(parts)


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file.removeprefix("./").lstrip("/"))
