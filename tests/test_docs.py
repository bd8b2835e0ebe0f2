"""README and docs run: every `$ capplan ...` block is executed and compared, every doctest too."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from console_blocks import PAGES, ROOT, agrees, commands, name_of, runs_in_order, shown

LOOSE = [page for page in PAGES if not runs_in_order(page)]
TOURS = [page for page in PAGES if runs_in_order(page)]
COMMANDS = [(name_of(page), *command) for page in LOOSE for command in commands(page)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [pytest.param(line, text, id=f"{page}: {line[:60]}") for page, line, text in COMMANDS],
)
def test_console_block(line: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = shown(line)
    assert agrees(expected, found), f"$ {line}\n{found}"


@pytest.mark.parametrize("page", TOURS, ids=name_of)
def test_page_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line, expected in commands(page):
        found = shown(line)
        assert agrees(expected, found), f"$ {line}\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_doctests(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_dots_stand_for_any_lines() -> None:
    assert agrees("a\n...\nc\n...", "a\nb\nc\nd")
    assert agrees("...\nc", "a\nc\nc")
    assert agrees("a\n...\nb", "a\nb")
    assert not agrees("a\n...\nb\n...\nb", "a\nb")
    assert not agrees("a", "a\nb")
    assert not agrees("b\n...", "a\nb")
    assert agrees("", "")


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 8
