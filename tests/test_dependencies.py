"""Every dependency is justified in docs/dependencies.md, and nothing else is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_each_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {_name(requirement) for group in groups for requirement in group}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("- **")]
    justified = {_name(name) for line in lines for name in re.findall(r"\*\*(.+?)\*\*", line)}
    assert declared == justified
    assert all(len(line.partition(":")[2].split()) >= 3 for line in lines), "say why"


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return match[0].lower()
