"""GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from capplan.render.check_sarif import full_message
from capplan.results.check import CheckResult

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def github(result: CheckResult) -> str:
    """One command a finding."""
    lines = []
    for finding in result.findings:
        place = f"file={_property(finding.file)},line={finding.line},col={finding.column}"
        title = _property(f"{finding.rule} {finding.name}")
        message = _data(full_message(finding))
        lines.append(f"::{_COMMANDS[finding.severity]} {place},title={title}::{message}")
    return "\n".join(lines) + "\n" if lines else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
