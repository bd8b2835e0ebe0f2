"""README and docs run: every `$ capplan ...` block is executed and compared, every doctest too.

In a ```console block a line of three dots stands for any lines, and `$ echo $?` shows the exit
code. Commands run from the repository's root, 80 columns wide, as on a terminal.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from capplan.cli.environment import Environment
from capplan.cli.run import run

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\)")


def _commands() -> list[tuple[str, str, str]]:
    """(page, command, expected output)."""
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            command = None
            output: list[str] = []
            for line in [*block.splitlines(), "$ end"]:
                if not line.startswith("$ "):
                    output.append(line)
                    continue
                if command is not None:
                    found.append((page.name, command, "\n".join(output)))
                command, output = line[2:], []
    return found


COMMANDS = _commands()


@pytest.mark.parametrize(
    ("command", "expected"),
    [pytest.param(c, e, id=f"{page}: {c[:60]}") for page, c, e in COMMANDS],
)
def test_console_block(command: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    line, _, pipe = command.partition(" | cat")
    words = shlex.split(line)
    assert words[0] == "capplan", command
    out, err = io.StringIO(), io.StringIO()
    piped = bool(pipe) or line != command
    code = run(words[1:], Environment(out, err, 80, is_terminal=not piped, colour=False))
    shown = (out.getvalue() + err.getvalue()).rstrip("\n")
    if code:
        shown += f"\n(exit code {code})"
    pattern = "".join(
        r"(?:.*\n)*?" if text == "..." else re.escape(text) + r"\n"
        for text in expected.rstrip("\n").split("\n")
    )
    assert re.fullmatch(pattern, shown + "\n"), f"$ {command}\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_doctests(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 8
