"""Each command has a page, which says what the program says, and shows the command at work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_reference import reference
from command_pages import FOLDER, names, page_of, with_current_help
from commands import run_command
from console_blocks import commands


@pytest.mark.parametrize("name", names())
def test_the_page_is_current(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(page_of(name), with_current_help(name))


@pytest.mark.parametrize("name", names())
def test_the_page_shows_each_command_at_work(name: str) -> None:
    lines = [line.removeprefix("capplan ") for line, _ in commands(page_of(name))]
    for path in reference():
        if path.split()[0] == name:
            assert [line for line in lines if f"{line} ".startswith(f"{path} ")], path


def test_no_page_is_left_over() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == set(names())


@pytest.mark.parametrize("path", reference())
def test_the_reference_is_what_help_says(path: str) -> None:
    """Every option that the page lists stands in `--help`, and the other way round."""
    _, text = run_command(f"{path} --help")
    listed = {name for option in reference()[path].options for name in option.names}
    lines = text.partition("Options:")[2].splitlines()
    shown = {
        word.strip(",")
        for line in lines
        if line.startswith("  -")
        for word in line[2:].split("  ")[0].replace(" / ", " ").split()
        if word.startswith("-")
    }
    assert shown - {"--help"} == listed


def test_every_option_says_what_it_does() -> None:
    for command in reference().values():
        for option in command.options:
            assert option.text, (command.path, option.names)
        for argument in command.arguments:
            assert argument.text, (command.path, argument.metavar)
