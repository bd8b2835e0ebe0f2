"""What a command may not load: modules are counted, not milliseconds (benchmarks/startup.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from capplan.__main__ import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
FOR_PEOPLE = {"rich", "plotext", "matplotlib", "numpy"}


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        ([], FOR_PEOPLE | {"pydantic", "yaml"}),
        (["--help"], FOR_PEOPLE | {"pydantic", "yaml"}),
        (["gpus", "--help"], FOR_PEOPLE | {"yaml"}),  # typer itself may need pydantic
        (["gpus", "--qps", "100", "--slo-ttft", "400ms"], FOR_PEOPLE),
        (["gpus", "--json"], FOR_PEOPLE),
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
