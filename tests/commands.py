"""The command lines whose output is kept in tests/golden/, and a way to run them."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.specs import catalogue_files

ROOT = Path(__file__).resolve().parent.parent


class Command(NamedTuple):
    name: str
    line: str
    schema: str
    exit_code: int = 0


COMMANDS = [
    Command("gpus", "gpus --qps 100 --slo-ttft 400ms", "capplan.gpus/1"),
    Command("gpus-bounds", "gpus --qps 100 --slo-ttft 400ms --no-verify", "capplan.gpus/1"),
    Command("gpus-compare", "gpus --hardware h100-sxm-80gb,a100-sxm-80gb,l4", "capplan.gpus/1"),
    Command("gpus-infeasible", "gpus --slo-tpot 1ms", "capplan.gpus/1", exit_code=1),
    Command("roofline", "roofline", "capplan.roofline/1"),
    Command("kv", "kv", "capplan.kv/1"),
    Command("kv-hybrid", "kv --model qwen3.5-27b", "capplan.kv/1"),
    Command("kv-mla", "kv --model deepseek-v2-lite", "capplan.kv/1"),
    Command(
        "kv-tight", "kv --model mixtral-8x7b --hardware h100-sxm-80gb", "capplan.kv/1", exit_code=1
    ),
    Command("kv-stages", "kv --model deepseek-v2-lite --tp 2 --pp 4", "capplan.kv/1"),
    Command(
        "simulate",
        "simulate --hardware h100-sxm-80gb --qps 6 --num-requests 1500",
        "capplan.simulate/1",
    ),
    Command(
        "simulate-saturated",
        "simulate --qps 40 --num-requests 600",
        "capplan.simulate/1",
        exit_code=1,
    ),
    Command(
        "pareto",
        "pareto --hardware h100-sxm-80gb --values 8,32,64,128 --num-requests 1200",
        "capplan.pareto/1",
    ),
    Command(
        "accuracy", "accuracy tests/data/measured_runs.csv --by gpu --worst 2", "capplan.accuracy/1"
    ),
    Command(
        "simulate-schedulers",
        "simulate --compare-schedulers --hardware h100-sxm-80gb --qps 8 --num-requests 400",
        "capplan.schedulers/1",
    ),
    Command("simulate-exercise", "simulate --exercise", "capplan.exercise/1"),
    Command(
        "simulate-variants",
        "simulate --plan tests/data/variants.yaml",
        "capplan.simulate-variants/1",
    ),
    Command("hardware-list", "hardware list", "capplan.hardware-list/1"),
    Command("hardware-show", "hardware show h100-sxm-80gb", "capplan.hardware/1"),
    Command("examples", "examples list", "capplan.examples/1"),
    Command("models-list", "models list", "capplan.models-list/1"),
    Command("models-show", "models show mixtral-8x7b", "capplan.model/1"),
]
# The lists are kept for these alone: a new YAML file must not break a test.
_KEPT = {
    "hardware": ["a100-sxm-80gb", "h100-sxm-80gb", "l4", "mi300x", "tpu-v5e"],
    "models": ["deepseek-v2-lite", "llama-3.1-8b", "mixtral-8x7b", "qwen3.5-27b"],
}


def run_command(line: str, *, width: int | None = None, refused: bool = False) -> tuple[int, str]:
    """Exit code and output; as in a terminal of that width, or piped where it is None.

    ``refused``: the command may be an error, which is then not in the output.
    """
    out, err = io.StringIO(), io.StringIO()
    terminal = width is not None
    env = Environment(out, err, width or 80, is_terminal=terminal, colour=False)
    with contextlib.chdir(ROOT):  # the names of files count from there
        code = run(line.split(), env)
    assert refused or not err.getvalue(), err.getvalue()
    return code, out.getvalue()


def keep_few(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the catalogue hold a few entries, laid out as in a wheel."""
    for kind, names in _KEPT.items():
        target = folder / "_catalog" / kind
        target.mkdir(parents=True)
        for name in names:
            shutil.copy(ROOT / kind / f"{name}.yaml", target)
    monkeypatch.setattr(catalogue_files, "_PACKAGE", folder)
