"""The house rules: a module imports from rows below its own, and no package goes in circles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Top to bottom; packages of one row do not know each other.
ROWS: list[set[str]] = [
    {"__main__"},
    {"cli"},
    {"render"},
    {"check"},
    {"planner", "accuracy"},
    {"simulator"},
    {"performance"},
    {"results"},
    {"specs"},
    {"formulas"},
    {"units"},
    {"errors"},
]
ROW_OF = {package: row for row, packages in enumerate(ROWS) for package in packages}
# Rows from which a package may import less than everything below it.
ONLY = {"render": {"results", "units", "errors"}, "formulas": set[str](), "results": set[str]()}


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for path in sorted((ROOT / "capplan").rglob("*.py"))}


def _imports(module: str) -> set[str]:
    """Our modules that ``module`` imports anywhere: at the top, in functions, for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else str(node.module) for name in names}
    return {name for name in found if name.split(".")[0] == "capplan"} - {module}


def _package(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("module", [name for name in MODULES if name != "capplan"])
def test_imports_come_from_below(module: str) -> None:
    own = _package(module)
    assert own in ROW_OF, f"which row does `{own}` stand in?"
    for imported in _imports(module):
        other = _package(imported) if "." in imported else ""
        if other not in ("", own):
            assert ROW_OF[other] > ROW_OF[own], f"{module} imports {imported} from above"
            assert other in ONLY.get(own, {other}), f"{module} sees {imported}"


def test_no_cycles() -> None:
    graph = {module: _imports(module) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())


def test_the_package_imports_nothing() -> None:
    body = ast.parse(MODULES["capplan"].read_text(encoding="utf-8")).body
    assert not [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
