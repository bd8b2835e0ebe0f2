"""docs/commands/: what `--help` says of each command, between two marks; the rest is by hand.

`pytest --update-golden tests/test_command_pages.py` writes what stands between the marks, and the
first page of a new command.
"""

from __future__ import annotations

from pathlib import Path

from cli_reference import Command, Option, reference, top_level

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "commands"
BEGIN = "<!-- from the program's own help; `pytest --update-golden` writes it -->"
END = "<!-- end of the help -->"
_NEW = "# capplan {name}\n\n" + BEGIN + "\n" + END + "\n\n## Example\n"


def page_of(name: str) -> Path:
    return FOLDER / f"{name}.md"


def names() -> list[str]:
    """One page a command; `hardware list` and `hardware show` share theirs."""
    return top_level()


def with_current_help(name: str) -> str:
    """The page as it should be: its own words around what the program says of itself."""
    page = page_of(name)
    text = page.read_text(encoding="utf-8") if page.exists() else _NEW.format(name=name)
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{page.name}: the marks around the help are missing"
    return f"{before}{BEGIN}\n\n{_help(name)}\n\n{END}{after}"


def _help(name: str) -> str:
    own = [command for path, command in reference().items() if path.split()[0] == name]
    parts = []
    for command in own:
        if len(own) > 1:
            parts.append(f"## capplan {command.path}")
        parts += [f"```\n{_usage(command)}\n```", command.text]
        if command.arguments:
            rows = [f"| `{_cell(arg.metavar)}` | {_cell(arg.text)} |" for arg in command.arguments]
            parts.append("\n".join(["| argument | |", "|---|---|", *rows]))
        if command.options:
            rows = [_row(option) for option in command.options]
            parts.append("\n".join(["| option | what it says | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _usage(command: Command) -> str:
    words = ["capplan", command.path]
    if command.path == "explain":
        words.append("COMMAND")
    if command.options or command.path == "explain":
        words.append("[OPTIONS]")
    return " ".join([*words, *(argument.metavar for argument in command.arguments)])


def _row(option: Option) -> str:
    first, *others = option.names
    typed = f"{first} {option.metavar}".strip()
    names = ", ".join(f"`{_cell(name)}`" for name in [typed, *others])
    return f"| {names} | {_cell(option.text)} | {_cell(option.default) or '-'} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
