"""Findings for people: file:line:col, the line itself, the arithmetic, one way out."""

from __future__ import annotations

from collections.abc import Iterator

from capplan import units
from capplan.results.check import CheckResult, Finding, FleetChange

_COLOURS = {"error": "\x1b[31m", "warning": "\x1b[33m", "info": "\x1b[36m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def text(result: CheckResult, *, colour: bool = False, quiet: bool = False) -> str:
    """The whole answer; ``quiet`` leaves out the summary where there is nothing to say."""
    lines: list[str] = []
    for finding in result.findings:
        lines += [*_finding(finding, colour), ""]
    for change in result.changes:
        lines.append(change_line(change))
    if result.changes:
        lines += [total_line(result), ""]
    if not quiet or result.findings:
        lines.append(headline(result))
    return "\n".join(lines) + "\n" if lines else ""


def _finding(finding: Finding, colour: bool) -> Iterator[str]:
    severity = finding.severity
    place = f"{finding.file}:{finding.line}:{finding.column}"
    if colour:
        severity = f"{_COLOURS[severity]}{severity}{_RESET}"
        place = f"{_BOLD}{place}{_RESET}"
    yield f"{place}: {severity} {finding.rule} {finding.name}: {finding.message}"
    number = str(finding.line)
    yield f"{' ' * len(number)} |"
    yield f"{number} | {finding.snippet}"
    yield f"{' ' * len(number)} |"
    for step in finding.arithmetic:
        yield f"{' ' * len(number)} = {step}"
    if finding.fix:
        yield f"{' ' * len(number)} fix: {finding.fix}"
    for note in finding.assumed:
        yield f"{' ' * len(number)} assumed: {note}"


def headline(result: CheckResult) -> str:
    """How many of what, in how much."""
    counts = [
        f"{n} {name}{'' if n == 1 or name == 'info' else 's'}"
        for name in ("error", "warning", "info")
        if (n := result.count(name))
    ]
    found = ", ".join(counts) if counts else "no findings"
    new = f" new since {result.base}" if result.base is not None else ""
    accepted = f"; {len(result.suppressed)} accepted" if result.suppressed else ""
    num = len(result.deployments)
    read = f"{result.num_files_checked} of {result.num_files} files"
    where = f"{num} deployment{'' if num == 1 else 's'} in {read}"
    return f"{found}{new}{accepted} ({where})"


def change_line(change: FleetChange) -> str:
    """`chat changed: +8 h100-sxm-80gb, +$39,100 a month, TTFT P99 310 ms to 540 ms`."""
    parts = []
    if change.num_gpus_before is not None and change.num_gpus_after is not None:
        difference = change.num_gpus_after - change.num_gpus_before
        hardware = change.hardware_after or change.hardware_before or "GPUs"
        if difference:
            parts.append(f"{difference:+d} {hardware}")
    before, after = change.hardware_before, change.hardware_after
    if before and after and before != after:
        parts.append(f"{before} to {after}")
    cost = cost_difference(change)
    if cost:
        parts.append(f"{money(cost)} a month")
    if (
        change.ttft_s_before is not None
        and change.ttft_s_after is not None
        and change.ttft_s_before != change.ttft_s_after
    ):
        first = units.format_duration(change.ttft_s_before, digits=3)
        then = units.format_duration(change.ttft_s_after, digits=3)
        parts.append(f"{change.ttft_name} {first} to {then}")
    old, new = change.kv_pool_tokens_before, change.kv_pool_tokens_after
    if old is not None and new is not None and old != new:
        parts.append(f"KV a replica {old:,} to {new:,} tokens")
    return (
        f"{change.file}: {change.deployment} {change.what}: {', '.join(parts) or 'size not known'}"
    )


def cost_difference(change: FleetChange) -> float | None:
    if change.usd_per_month_before is None or change.usd_per_month_after is None:
        return None
    return change.usd_per_month_after - change.usd_per_month_before


def money(amount: float) -> str:
    """A signed sum in three digits.

    >>> money(39_142.6)
    '+$39,100'
    """
    sign = "+" if amount >= 0 else "-"
    return f"{sign}{units.format_money(abs(amount), digits=3)}"


def total_line(result: CheckResult) -> str:
    """The sum over all deployments that changed."""
    gpus = sum(
        c.num_gpus_after - c.num_gpus_before
        for c in result.changes
        if c.num_gpus_after is not None and c.num_gpus_before is not None
    )
    cost = sum(cost_difference(c) or 0.0 for c in result.changes)
    return f"in all: {gpus:+d} GPUs, {money(cost)} a month"
