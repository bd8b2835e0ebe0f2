"""docs/model.md: numbered without gaps, every formula named, every name and reference real."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
BODY, _, GLANCE = TEXT.partition("## Every equation at a glance")


def _definitions(folder: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {
        node.name
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
    }


def _numbers() -> list[str]:
    """Of the equations as they stand: 1 on, the parts 12.1 .., and B1 .. of blocks."""
    found, last = [], ""
    for indent, block, plain in re.findall(r"^( *)(?:- \*\*(B\d+)\. |(\d+)\. \*\*)", BODY, re.M):
        if block:
            found.append(block)
        elif indent:
            found.append(f"{last}.{plain}")
        else:
            last = plain
            found.append(plain)
    return found


NUMBERS = _numbers()


def test_numbers_have_no_gaps() -> None:
    series: dict[str, list[int]] = {}
    for number in NUMBERS:
        before, last = re.fullmatch(r"(B|\d+\.|)(\d+)", number).groups()  # type: ignore[union-attr]
        series.setdefault(before, []).append(int(last))
    assert set(series) == {"", "12.", "B"}
    for name, numbers in series.items():
        assert numbers == list(range(1, len(numbers) + 1)), name


def test_every_equation_has_a_row() -> None:
    cells = re.findall(r"^\| ([B\d., ]+) \|", GLANCE, re.M)
    listed = [number for cell in cells for number in cell.split(", ")]
    assert len(listed) == len(set(listed))
    # 12 is the sum of its parts.
    assert set(listed) == set(NUMBERS) - {"12"}


def test_names_are_real() -> None:
    known = _definitions(ROOT / "capplan")
    named = re.findall(r"`([A-Za-z_]\w+)`", GLANCE)
    assert len(named) > 60
    assert [name for name in named if name not in known] == []


def test_every_formula_is_on_the_page() -> None:
    formulas = ROOT / "capplan" / "formulas"
    functions = {
        node.name
        for path in formulas.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert functions - set(re.findall(r"`(\w+)`", GLANCE)) == set()


@pytest.mark.parametrize("folder", ["docs", "capplan"])
def test_references_lead_to_an_equation(folder: str) -> None:
    """`eq. 13` and `eqs. 14 to 17` of pages, `docs/model.md 13` of explanations."""
    pages = [*(ROOT / folder).rglob("*.md"), *(ROOT / folder).rglob("*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for found in re.findall(r"docs/model\.md ([\dB][\d.]*(?:, [\dB][\d.]*)*)", text):
            for number in found.split(", "):
                assert number.rstrip(".") in NUMBERS, f"{page.name}: {number}"
        if page.suffix == ".md":
            for found in re.findall(r"\b[Ee]qs?\. ([\dB.]+(?: (?:and|to) [\dB.]+)?)", text):
                for number in re.split(r" and | to ", found):
                    assert number.rstrip(".") in NUMBERS, f"{page.name}: {found}"
