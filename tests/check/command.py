"""Running `capplan check` as a shell would, and small repositories to run it in."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from capplan.cli.environment import Environment
from capplan.cli.run import run

ROOT = Path(__file__).resolve().parents[2]
# Two ranks on one GPU: CP005, an error.
BROKEN = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  replicas: 2
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          args:
            - --model=meta-llama/Llama-3.1-8B-Instruct
            - --tensor-parallel-size=2
            - --max-model-len=8192
          resources: {limits: {nvidia.com/gpu: 1}}
"""
FINE = BROKEN.replace("size=2", "size=1")
TP_LINE = 1 + BROKEN[: BROKEN.index("--tensor")].count("\n")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def check(folder: Path, *words: str, colour: bool = False) -> Ran:
    """`capplan check` in a folder."""
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=colour, colour=colour)
    with contextlib.chdir(folder):
        code = run(["check", *words], env)
    return Ran(code, out.getvalue(), err.getvalue())


def write(folder: Path, **files: str) -> Path:
    """Files by name, `__` for a dot: `chat__yaml`."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def git(folder: Path, *words: str) -> str:
    """git without anybody's configuration."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def repository(folder: Path) -> Path:
    """Everything in a folder, committed."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it is")
    return folder
