"""How long `capplan check` takes for many files, beside what starting and parsing alone take.

    python benchmarks/check_speed.py [--files 200] [DIR ...]

Copies the manifests of `tests/check/manifests` (or of each DIR) under new names until there are
that many, and checks them in a process of their own, five times. PyYAML's own parser over the
same YAML files is the yardstick: a ratio within one run says more than seconds on some machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

MANIFESTS = Path(__file__).resolve().parents[1] / "tests" / "check" / "manifests"
_TURNS = 5
_YARDSTICK = """
import sys, yaml
from pathlib import Path
for path in sorted(Path(sys.argv[1]).rglob("*.y*ml")):
    try:
        list(yaml.compose_all(path.read_text(encoding="utf-8"), Loader=yaml.{loader}))
    except yaml.YAMLError:
        pass
"""


def copies(folders: list[Path], num: int, target: Path) -> int:
    """So many files, the originals in turn; their lines."""
    originals = [p for f in folders for p in sorted(f.rglob("*")) if p.is_file()]
    originals = [path for path in originals if path.suffix not in (".csv", ".md")]
    lines = 0
    for i in range(num):
        original = originals[i % len(originals)]
        folder = target / f"{i // len(originals):03d}"
        folder.mkdir(exist_ok=True)
        text = original.read_text(encoding="utf-8", errors="replace")
        (folder / original.name).write_text(text, encoding="utf-8")
        lines += text.count("\n")
    return lines


def seconds(command: list[str]) -> float:
    """The best of some turns."""
    best = float("inf")
    for _ in range(_TURNS):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("folders", nargs="*", type=Path)
    given = parser.parse_args()
    loader = "CSafeLoader" if hasattr(yaml, "CSafeLoader") else "SafeLoader"
    with tempfile.TemporaryDirectory() as place:
        lines = copies(given.folders or [MANIFESTS], given.files, Path(place))
        yardstick = _YARDSTICK.format(loader=loader)
        rows = [
            ("capplan --version", seconds([sys.executable, "-m", "capplan", "--version"])),
            (f"PyYAML ({loader})", seconds([sys.executable, "-c", yardstick, place])),
            ("capplan check", seconds([sys.executable, "-m", "capplan", "check", place])),
        ]
    print(f"{given.files} files, {lines:,} lines; the best of {_TURNS}")
    for name, taken in rows:
        print(f"  {name:24} {taken:6.2f} s  {taken / rows[1][1]:5.1f} x PyYAML")


if __name__ == "__main__":
    main()
