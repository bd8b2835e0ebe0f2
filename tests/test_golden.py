"""Our own output, kept as files: a change of it is seen in review. Claims nothing about truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMANDS, ROOT, Command, keep_few, run_command

FOLDER = ROOT / "tests" / "golden"
WIDTHS = (80, 120)
commands = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
widths = pytest.mark.parametrize("width", WIDTHS)
Compare = Callable[[Path, str], None]


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_few(monkeypatch, tmp_path)


@commands
@widths
@pytest.mark.usefixtures("_few")
def test_screen(command: Command, width: int, golden: Compare) -> None:
    code, text = run_command(command.line, width=width)
    assert code == command.exit_code
    golden(FOLDER / f"{command.name}.{width}.txt", text)


@commands
@pytest.mark.usefixtures("_few")
def test_piped(command: Command, golden: Compare) -> None:
    code, text = run_command(command.line)
    assert code == command.exit_code
    golden(FOLDER / f"{command.name}.tsv", text)


@commands
@pytest.mark.usefixtures("_few")
def test_json(command: Command, golden: Compare) -> None:
    code, text = run_command(f"{command.line} --json")
    assert code == command.exit_code
    golden(FOLDER / f"{command.name}.json", text)


@commands
@widths
def test_screens_fit(command: Command, width: int) -> None:
    """Nothing is cut off, nothing runs over, nothing trails; with the whole catalogue too."""
    _, text = run_command(command.line, width=width)
    assert "…" not in text
    assert not [line for line in text.splitlines() if len(line) > width]
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@commands
def test_tables_for_programs(command: Command) -> None:
    """Each table: perhaps `# title`, a head of keys, and rows that are as wide as the head."""
    _, text = run_command(command.line)
    for table in text.rstrip("\n").split("\n\n"):
        head, *rows = [line for line in table.split("\n") if not line.startswith("# ")]
        keys = head.split("\t")
        assert len(keys) > 1
        assert all(key.isidentifier() for key in keys), keys
        assert len(set(keys)) == len(keys)
        assert {len(row.split("\t")) for row in rows} <= {len(keys)}


def test_no_golden_file_is_left_over() -> None:
    suffixes = [f".{width}.txt" for width in WIDTHS] + [".tsv", ".json"]
    expected = {command.name + suffix for command in COMMANDS for suffix in suffixes}
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == expected
