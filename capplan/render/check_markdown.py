"""Markdown for a comment under a pull request: short, and found again by its marker."""

from __future__ import annotations

from capplan import units
from capplan.render.check_text import cost_difference, headline, money, total_line
from capplan.results.check import CheckResult, FleetChange

MARKER = "<!-- capplan check -->"
_SIGNS = {"error": "❌", "warning": "⚠️", "info": "ℹ️"}
MAX_ROWS = 50


def markdown(result: CheckResult) -> str:
    """Headline, what the change does to the fleet, the findings."""
    lines = [MARKER, f"### capplan check: {headline(result)}", ""]
    if result.changes:
        lines += [
            "| deployment | GPUs | a month | TTFT | KV tokens a replica |",
            "|---|---|---|---|---|",
        ]
        lines += [_change(change) for change in result.changes[:MAX_ROWS]]
        lines += ["", f"**{total_line(result)}**", ""]
    if result.findings:
        lines += ["| | rule | where | finding | fix |", "|---|---|---|---|---|"]
        for finding in result.findings[:MAX_ROWS]:
            place = f"`{finding.file}:{finding.line}`"
            cells = (
                _SIGNS[finding.severity] + " " + finding.severity,
                f"{finding.rule} {finding.name}",
                place,
                finding.message,
                finding.fix or "",
            )
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        if len(result.findings) > MAX_ROWS:
            lines.append(f"\nand {len(result.findings) - MAX_ROWS} more")
    return "\n".join(lines).rstrip() + "\n"


def _change(change: FleetChange) -> str:
    gpus = _arrow(change.num_gpus_before, change.num_gpus_after)
    hardware = change.hardware_after or change.hardware_before
    cost = cost_difference(change)
    first = [
        None if value is None else units.format_duration(value, digits=3)
        for value in (change.ttft_s_before, change.ttft_s_after)
    ]
    ttft = " → ".join(value for value in first if value is not None)
    kv = _arrow(change.kv_pool_tokens_before, change.kv_pool_tokens_after)
    cells = (
        f"`{change.deployment}` {change.what}",
        f"{gpus} {hardware or ''}".strip(),
        "not known" if cost is None else money(cost) if cost else "unchanged",
        f"{change.ttft_name} {ttft}" if ttft else "",
        kv,
    )
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _arrow(before: int | None, after: int | None) -> str:
    if before is None and after is None:
        return ""
    shown = [f"{value:,}" if value is not None else "?" for value in (before, after)]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} → {shown[1]}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
