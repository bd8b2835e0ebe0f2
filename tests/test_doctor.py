"""`capplan doctor` finds what is wrong, and `capplan` alone says how to begin."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from commands import ROOT, run_command
from jsonschema import Draft202012Validator

from capplan.planner import doctor


def test_a_whole_installation() -> None:
    code, text = run_command("doctor --json")
    answer = json.loads(text)
    schema = json.loads((ROOT / "docs" / "schemas" / "capplan.doctor-1.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(answer)
    result = answer["result"]
    assert code == 0, result["checks"]
    assert result["healthy"]
    assert len(result["checks"]) == 6
    counted = {place["kind"]: place["num_files"] for place in result["catalogue"]}
    assert counted == {kind: len(list((ROOT / kind).glob("*.yaml"))) for kind in counted}


def test_a_broken_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "hardware"
    own.mkdir()
    (own / "mine.yaml").write_text("name: [", encoding="utf-8")
    monkeypatch.setenv("CAPPLAN_PATH", str(tmp_path))
    # The bundled models are read above.
    monkeypatch.setattr(doctor, "names", lambda kind: ["mine" if kind == "hardware" else "phi-2"])
    code, text = run_command("doctor", width=100)
    assert code == 1
    assert text.startswith("1 of 6 checks do not hold.")
    assert "mine.yaml:2" in text.replace("\n", "")


def test_packages_are_those_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {None: project["dependencies"], **project["optional-dependencies"]}
    del declared["test"]
    found = {
        extra: tuple(re.split(r"[<>=]", requirement)[0] for requirement in many)
        for extra, many in declared.items()
    }
    assert found == doctor.PACKAGES


def test_capplan_alone_says_how_to_begin() -> None:
    code, text = run_command("")
    assert code == 0
    for line in re.findall(r"^  (capplan [a-z]+(?: [a-z]+)?)", text, re.M):
        words = line.split()[1:]
        assert run_command(" ".join([*words, "--help"]))[0] == 0
    assert len(text.splitlines()) < 10
