"""Start-up time of `capplan` against the mere import of what it stands on.

    python benchmarks/startup.py [--repeat N] [--json]

Each round runs every command once, so that a slow moment of the machine hits all of them alike;
the medians are compared. Byte code is cached, as in any installation. Exit code 1 where a ratio is
above its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Comparison(NamedTuple):
    arguments: str  # of capplan
    imports: str  # of the bare interpreter
    bar: float  # the largest ratio allowed


COMPARISONS = (
    Comparison("--help", "import typer, rich", 1.5),
    Comparison(
        "gpus --qps 100 --slo-ttft 400ms --no-verify", "import typer, rich, pydantic, yaml", 2.5
    ),
)


def capplan_command() -> list[str]:
    """The console script of this interpreter; the module where it is not installed."""
    script = Path(sys.executable).with_name("capplan")
    return [str(script)] if script.exists() else [sys.executable, "-m", "capplan"]


def wall_time_s(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    elapsed = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stderr.decode()}")
    return elapsed


def measure(repeat: int) -> list[dict[str, object]]:
    """Median wall times and their ratio for each comparison, all interleaved."""
    pairs = [
        ([*capplan_command(), *c.arguments.split()], [sys.executable, "-c", c.imports])
        for c in COMPARISONS
    ]
    commands = [command for pair in pairs for command in pair]
    for command in commands:  # byte code and file caches
        wall_time_s(command)
    rounds = [[wall_time_s(command) for command in commands] for _ in range(repeat)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return [
        {
            "command": f"capplan {c.arguments}",
            "baseline": f'python -c "{c.imports}"',
            "median_s": ours,
            "baseline_median_s": bare,
            "ratio": ours / bare,
            "bar": c.bar,
        }
        for c, ours, bare in zip(COMPARISONS, medians[::2], medians[1::2], strict=True)
    ]


def table(rows: Sequence[dict[str, object]]) -> str:
    lines = []
    for row in rows:
        verdict = "ok" if within(row) else "MISSED"
        lines += [
            f"{row['median_s']:.4f} s  {row['command']}",
            f"{row['baseline_median_s']:.4f} s  {row['baseline']}",
            f"ratio {row['ratio']:.2f}, bar {row['bar']}: {verdict}",
            "",
        ]
    return "\n".join(lines).rstrip()


def within(row: dict[str, object]) -> bool:
    return float(str(row["ratio"])) <= float(str(row["bar"]))


def asked(description: str | None, rounds: int) -> argparse.Namespace:
    """`--repeat` and `--json`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--repeat", type=int, default=rounds, metavar="N", help=f"rounds (default {rounds})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat: at least 1")
    return options


def main() -> int:
    options = asked(__doc__, 15)
    rows = measure(options.repeat)
    print(json.dumps(rows, indent=2) if options.json else table(rows))
    return 0 if all(within(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
