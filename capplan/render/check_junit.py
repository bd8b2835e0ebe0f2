"""JUnit XML: one test a deployment, failed by findings at or above the fail level."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from capplan.results.check import CheckResult, Finding


def junit(result: CheckResult, fail_level: str) -> str:
    """Suites are files, tests deployments; what does not fail stands in their output."""
    files: dict[str, dict[str, None]] = {}
    for deployment in result.deployments:
        files.setdefault(deployment.file, {})[deployment.name] = None
    for finding in result.findings:
        files.setdefault(finding.file, {})[finding.deployment or "file"] = None
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    failing = [f for f in result.findings if f.reaches(fail_level)]
    num = sum(len(names) for names in files.values())
    lines.append(
        f'<testsuites name="capplan check" tests="{num}" failures="{_num_failed(failing)}">'
    )
    for file, names in files.items():
        here = [f for f in result.findings if f.file == file]
        bad = [f for f in here if f.reaches(fail_level)]
        lines.append(
            f'  <testsuite name={_quoted(file)} tests="{len(names)}" failures="{_num_failed(bad)}">'
        )
        for name in names:
            own = [f for f in here if (f.deployment or "file") == name]
            lines += _case(file, name, own, fail_level)
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _num_failed(findings: list[Finding]) -> int:
    return len({(f.file, f.deployment) for f in findings})


def _case(file: str, name: str, findings: list[Finding], fail_level: str) -> list[str]:
    head = f"    <testcase classname={_quoted(file)} name={_quoted(name)}"
    if not findings:
        return [f"{head}/>"]
    lines = [f"{head}>"]
    failing = [f for f in findings if f.reaches(fail_level)]
    rest = [f for f in findings if not f.reaches(fail_level)]
    if failing:
        first = failing[0]
        text = "\n".join(_text(finding) for finding in failing)
        lines.append(
            f"      <failure type={_quoted(first.rule)} message={_quoted(first.message)}>"
            f"{_escaped(text)}</failure>"
        )
    if rest:
        text = "\n".join(_text(finding) for finding in rest)
        lines.append(f"      <system-out>{_escaped(text)}</system-out>")
    lines.append("    </testcase>")
    return lines


def _text(finding: Finding) -> str:
    parts = [
        f"{finding.file}:{finding.line}:{finding.column}: "
        f"{finding.severity} {finding.rule} {finding.message}"
    ]
    parts += [f"  {step}" for step in finding.arithmetic]
    if finding.fix:
        parts.append(f"  fix: {finding.fix}")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    # XML 1.0 has no control characters; findings have none but for line ends.
    return escape("".join(c for c in text if c.isprintable() or c == "\n"))


def _quoted(text: str) -> str:
    return quoteattr("".join(c for c in text if c.isprintable()))
