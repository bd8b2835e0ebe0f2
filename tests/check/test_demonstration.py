"""The demonstration repository: its CI configurations are run, before and after a bad change."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import ROOT, check, git, repository
from test_outputs import sarif

EXAMPLES = ROOT / "examples"
BROUGHT = {
    "apps/chat.yaml CP042", "apps/chat.yaml CP043", "apps/chat.yaml CP014",
    "apps/chat.yaml CP012", "apps/coder.compose.yaml CP011", "apps/search-values.yaml CP005",
}  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    place = tmp_path / "fleet"
    shutil.copytree(EXAMPLES / "fleet", place)
    return repository(place)


def change(fleet: Path) -> None:
    """The pull request that should not be merged, committed."""
    git(fleet, "checkout", "-q", "-b", "raise-limits")
    git(fleet, "apply", str(EXAMPLES / "raise-limits.patch"))
    git(fleet, "commit", "-qam", "Raise limits")


def shell(script: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Run as a CI runner does; `capplan` is this one."""
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "capplan").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m capplan "$@"\n')
    (tools / "capplan").chmod(0o755)
    environment = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "HOME": str(folder.parent), "GIT_CONFIG_GLOBAL": os.devnull, **variables,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def filled(text: str, values: Mapping[str, str]) -> str:
    """`${{ name }}` by its value; other expressions are no part of these files."""
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], text)


def run_action(given: Mapping[str, str], fleet: Path) -> tuple[int, str]:
    """The steps of action.yml with these inputs, installing aside."""
    action = load(ROOT / "action.yml")
    assert set(given) <= set(action["inputs"])
    inputs = {f"inputs.{k}": given.get(k, v["default"]) for k, v in action["inputs"].items()}
    assert action["runs"]["using"] == "composite"
    code, out = 0, ""
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]  # inputs in a script are a way in for anybody
        if step["name"] == "Install":
            assert step["run"].startswith("python3 -m pip install")
            continue
        variables = {name: filled(text, inputs) for name, text in step["env"].items()}
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            variables[name] = str(fleet.parent / name)
        code, out = shell(step["run"], fleet, variables)
    return code, out


def run_workflow(fleet: Path, base: str) -> tuple[int, str]:
    """The workflow of the demonstration repository; the annotations of its check."""
    workflow = load(fleet / ".github" / "workflows" / "capacity.yml")
    assert True in workflow  # `on`
    answer = None
    for step in workflow["jobs"]["check"]["steps"]:
        name = step.get("uses", "").partition("@")[0]
        event = {"github.event.pull_request.base.sha": base}
        options = {k: filled(v, event) for k, v in step.get("with", {}).items() if type(v) is str}
        if name == "capplan/capplan":
            answer = run_action(options, fleet)
        elif name == "github/codeql-action/upload-sarif":
            sarif((fleet / options["sarif_file"]).read_text(encoding="utf-8"))
        elif "run" in step:
            assert "capplan.md" in step["run"]
            assert "<!-- capplan check -->" in (fleet / "capplan.md").read_text(encoding="utf-8")
        else:
            assert name == "actions/checkout"
            assert step["with"]["fetch-depth"] == 0
    assert answer is not None
    return answer


def test_github_is_green_and_turns_red(fleet: Path) -> None:
    code, out = run_workflow(fleet, base="")
    assert (code, out) == (0, "")
    base = git(fleet, "rev-parse", "HEAD").strip()
    change(fleet)
    code, out = run_workflow(fleet, base)
    assert code == 1
    found = set()
    for line in out.splitlines():
        match = re.match(r"::(?:error|warning) file=([^,]+),line=\d+,col=\d+,title=(CP\d+) ", line)
        assert match, line
        found.add(f"{match[1]} {match[2]}")
    assert found == BROUGHT
    summary = (fleet.parent / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    assert "| `chat` changed | 2 → 4 h100-sxm-80gb | +$10,000 | TTFT P95 " in summary
    outputs = (fleet.parent / "GITHUB_OUTPUT").read_text(encoding="utf-8")
    assert outputs.splitlines() == ["exit-code=0", "exit-code=1"]


def test_gitlab_is_green_and_turns_red(fleet: Path) -> None:
    job = load(fleet / ".gitlab-ci.yml")["capplan"]
    assert job == load(ROOT / "ci" / "capplan.gitlab-ci.yml")["capplan"]
    assert any(line.startswith("pip install") for line in job["before_script"])
    variables = dict(job["variables"])
    (script,) = job["script"]
    assert shell(script, fleet, variables)[0] == 0
    base = git(fleet, "rev-parse", "HEAD").strip()
    change(fleet)
    code, out = shell(script, fleet, variables | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base})
    assert code == 1
    assert "in all: +2 GPUs, +$10,000 a month" in out
    report = (fleet / job["artifacts"]["reports"]["junit"]).read_text(encoding="utf-8")
    assert report.count("<failure ") == 3
    assert (fleet / job["artifacts"]["paths"][0]).exists()


def test_pre_commit_gets_the_changed_files(fleet: Path) -> None:
    hooks = {hook["id"]: hook for hook in load(ROOT / ".pre-commit-hooks.yaml")}
    (used,) = load(fleet / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    entry = hooks[used["id"]]["entry"]
    assert shell(f"{entry} .gitlab-ci.yml .capplan.yaml", fleet, {}) == (0, "")
    git(fleet, "apply", str(EXAMPLES / "raise-limits.patch"))
    code, out = shell(f"{entry} apps/search-values.yaml", fleet, {})
    assert code == 1
    assert out.startswith("apps/search-values.yaml:17:")


def test_the_first_check_is_red_and_then_green() -> None:
    ran = check(ROOT, "--json", "examples/first-check/before.yaml")
    found = [finding["rule"] for finding in json.loads(ran.out)["result"]["findings"]]
    assert (ran.code, found) == (1, ["CP005", "CP010", "CP024", "CP011"])
    assert check(ROOT, "--fail-level=info", "examples/first-check/after.yaml").code == 0
