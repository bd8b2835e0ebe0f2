"""What a command may not load: modules are counted, not milliseconds (benchmarks/startup.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from capplan.cli.run import run

PROGRAM = """
import sys
from capplan.__main__ import main
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
"""
FOR_PEOPLE = {"rich", "plotext", "matplotlib", "numpy"}


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        ([], FOR_PEOPLE | {"pydantic", "yaml"}),
        (["--help"], FOR_PEOPLE | {"pydantic", "yaml"}),
        (["gpus", "--help"], FOR_PEOPLE | {"yaml"}),  # typer itself may need pydantic
        (
            ["gpus", "--qps", "100", "--slo-ttft", "400ms", "--no-verify"],
            FOR_PEOPLE | {"multiprocessing", "email", "zipfile"},
        ),
        (["gpus", "--hardware", "h100-sxm-80gb", "--json"], FOR_PEOPLE),
        (["roofline"], FOR_PEOPLE),
        (["kv"], FOR_PEOPLE),
        (
            ["simulate", "--hardware", "h100-sxm-80gb", "--qps", "2", "--num-requests", "1100"],
            FOR_PEOPLE,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_imports(arguments: list[str], unwanted: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout
    loaded = set(done.stderr.split())
    assert "capplan" in loaded
    assert not loaded & unwanted, f"loaded: {sorted(loaded - set(sys.stdlib_module_names))}"


def test_completion_reads_no_catalogue() -> None:
    """A person waits for it; names come from file names."""
    done = _complete("capplan gpus --model llama-3.1-8")
    assert {"llama-3.1-8b", "llama-3.1-8b-fp8"} <= set(done.stdout.split())
    # typer may need pydantic; rich is listed because it was shut out.
    assert not set(done.stderr.split()) & (FOR_PEOPLE - {"rich"} | {"yaml"})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("capplan kv --hardw", {"--hardware"}),
        ("capplan gpus --hardware l4,h100-sxm", {"l4,h100-sxm-80gb"}),
        ("capplan hardware show l40", {"l40", "l40s"}),
        ("capplan examples copy ra", {"rag"}),
        ("capplan schema pl", {"plan"}),
        ("capplan kv --engine v", {"vllm"}),
        ("capplan gpus --emit k", {"kubernetes", "kserve"}),
        ("capplan simulate --router rand", {"random", "random-of-two"}),
        ("capplan kv --kv-dtype fp8", {"fp8"}),
        ("capplan check --explain CP00", {"CP001", "CP002"}),
    ],
)
def test_completion(line: str, expected: set[str]) -> None:
    assert expected <= set(_complete(line).stdout.split())


def _complete(line: str) -> subprocess.CompletedProcess[str]:
    asked = {
        "_CAPPLAN_COMPLETE": "complete_bash",
        "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | asked,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--show-completion", shell]) == 0
    assert f"_CAPPLAN_COMPLETE=complete_{shell}" in capsys.readouterr().out
    assert run(["--show-completion", "tcsh"]) == 2
