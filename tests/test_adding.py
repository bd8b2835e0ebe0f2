"""The two pages on adding an accelerator and a model, done literally."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from capplan.cli.environment import Environment
from capplan.cli.run import run

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize(
    ("page", "folder", "name"),
    [
        ("adding-hardware.md", "hardware", "x1"),
        ("adding-a-model.md", "models", "example-9b"),
    ],
)
def test_the_file_on_the_page_is_all_it_takes(
    page: str, folder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    (specification,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    (commands,) = re.findall(r"^```\n(capplan .*?)^```", text, re.M | re.S)
    (tmp_path / f"{name}.yaml").write_text(specification, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for command in commands.splitlines():
        assert _run(command.split()[1:]), command

    # The same by name, from a folder of one's own.
    (tmp_path / folder).mkdir()
    (tmp_path / f"{name}.yaml").rename(tmp_path / folder / f"{name}.yaml")
    monkeypatch.setenv("CAPPLAN_PATH", str(tmp_path))
    assert name in _run([folder, "list"])
    assert name in _run([folder, "show", name, "--json"])
    option = {"hardware": "--hardware", "models": "--model"}[folder]
    assert _run(["gpus", "--qps", "1", option, name])


def _run(arguments: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    code = run(arguments, Environment(out, err, 80, is_terminal=False, colour=False))
    assert code == 0, err.getvalue()
    return out.getvalue()
