"""Every name that docs/nomenclature.md cites exists where the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "nomenclature.md"


def _rows() -> list[tuple[str, tuple[str, ...], str]]:
    """(term, identifiers, file) of every row of every table."""
    rows = []
    code = where = -1
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "term":
            code, where = cells.index("in the code"), cells.index("where")
        elif not cells[0].startswith("---"):
            names = tuple(re.findall(r"`([^`]+)`", cells[code]))
            rows.append((cells[0], names, cells[where].strip("`")))
    return rows


ROWS = _rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_code_has_it(row: tuple[str, tuple[str, ...], str]) -> None:
    _, names, where = row
    text = (ROOT / "capplan" / where).read_text(encoding="utf-8")
    assert names
    for name in names:
        assert re.search(rf"\b{re.escape(name)}\b", text), f"{name} is not in {where}"


def test_no_row_stands_twice() -> None:
    terms = [term for term, _, _ in ROWS]
    assert len(terms) == len(set(terms)) > 50


def test_sources_are_numbered_and_cited() -> None:
    body, _, sources = PAGE.read_text(encoding="utf-8").partition("## Sources")
    listed = {int(number) for number in re.findall(r"^(\d+)\. ", sources, re.M)}
    cited = {int(n) for group in re.findall(r"\[([\d, ]+)\]", body) for n in group.split(",")}
    assert cited == listed
