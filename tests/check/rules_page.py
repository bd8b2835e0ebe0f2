"""docs/rules.md from the rules themselves: `python tests/check/rules_page.py` writes it."""

from __future__ import annotations

from pathlib import Path

from capplan.check.flag_history import VLLM_CHANGES
from capplan.check.rules.catalogue import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"
_HEAD = """# Rules of `capplan check`

An **error** is a fact: the engine refuses, the sum does not fit, the degrees need more GPUs than
there are. It must hold for every accelerator that a label may mean, at the favourable end of what
logs show, and with every option that may be set elsewhere. A **warning** is a judgement, an
**info** a note. `capplan check --explain CP003` prints a section of this page.

This page is written by `python tests/check/rules_page.py` from the rules themselves; a test
compares.
"""


def page() -> str:
    parts = [_HEAD, "| id | name | severity | |", "|---|---|---|---|"]
    for rule in RULES:
        parts.append(
            f"| [{rule.id}](#{rule.id.lower()}) | {rule.name} | {rule.severity} | {rule.summary} |"
        )
    for rule in RULES:
        parts += ["", f'<a id="{rule.id.lower()}"></a>', "", f"### {rule.id} {rule.name}", ""]
        parts += [f"*{rule.severity}*: {rule.summary}.", "", rule.why]
    parts += ["", "## Options by engine version (CP029, CP030)", ""]
    parts += ["| option of vLLM | ignored from | gone from | source |", "|---|---|---|---|"]
    for change in VLLM_CHANGES:
        cells = (f"`--{change.flag}`", change.ignored or "", change.removed or "", change.source)
        parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
