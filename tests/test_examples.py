"""The plans of the package run, are copied whole, and overwrite nothing; schemas are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import ROOT, run_command

from capplan.cli.run import run
from capplan.planner.examples import example_files, examples
from capplan.specs.schemas import schema_names

NAMES = [fact.id for fact in examples()]
PROMISED = {"chat-8b", "rag", "agents", "batch-summaries", "code-completion", "incident"}
each = pytest.mark.parametrize("name", NAMES)


def test_what_is_there() -> None:
    assert set(NAMES) >= PROMISED
    for fact in examples():
        assert len(fact.note.split()) > 8, fact.id


@each
def test_a_copy_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["examples", "copy", name]) == 0
    assert f"capplan simulate --plan {name}.yaml" in capsys.readouterr().err
    # Two hundred requests are too few for a P99: 1 is the answer that nobody can tell.
    assert run(["simulate", "--plan", f"{name}.yaml", *_few(name)]) in (0, 1)
    out, err = capsys.readouterr()
    assert out
    assert "error" not in err


def _few(name: str) -> list[str]:
    """Of a trace so many are there; replicas fail at times that the traffic must reach."""
    _, others = example_files(name)
    if others:
        return []
    return ["--duration", "40s"] if name == "replica-failure" else ["--num-requests", "200"]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "head-of-line.csv").write_text("mine", encoding="utf-8")
    target = tmp_path / "plan.yaml"
    assert run(["examples", "copy", "head-of-line", "--output", str(target)]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert not target.exists(), "all files or none"
    assert run(["examples", "copy", "rag", "--output", str(target)]) == 0
    assert run(["examples", "copy", "rag", "--output", str(target)]) == 2


def test_unknown_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples", "copy", "../rag"]) == 2
    assert run(["examples", "copy", "agent"]) == 2
    assert "did you mean `agents`?" in capsys.readouterr().err


def test_schemas_are_printed_as_published() -> None:
    folder = ROOT / "docs" / "schemas"
    printed = {run_command(f"schema {name}")[1] for name in schema_names()}
    assert printed == {path.read_text(encoding="utf-8") for path in folder.iterdir()}
    listed = run_command("schema")[1].splitlines()
    assert [line.split()[0] for line in listed] == list(schema_names())
    assert run_command("schema kv") == run_command("schema capplan.kv/1")
