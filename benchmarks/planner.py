"""Time of the planner's answers, as ratios to `capplan --version` and within one run.

    python benchmarks/planner.py [--repeat N] [--json]

Each round runs every command once, so that a slow moment of the machine hits all of them alike;
medians are compared. Nothing is kept between runs but where the name says so.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from startup import asked, capplan_command

COMMANDS = {
    "--version": "--version",
    "bounds only": "gpus --qps 100 --slo-ttft 400ms --no-verify",
    "default question, with proof": "gpus --qps 100 --slo-ttft 400ms --no-cache",
    "another limit, points kept": "gpus --qps 100 --slo-ttft 300ms --slo-tpot 24ms",
    "with sensitivity": "gpus --qps 100 --slo-ttft 400ms --sensitivity --no-cache",
    "whole catalogue": "gpus --qps 100 --slo-ttft 400ms --hardware all --no-cache",
}


def times_s(line: str, cache: str) -> tuple[float, float]:
    """Wall and processor time of one command, its workers included."""
    before = os.times()
    start = time.perf_counter()
    done = subprocess.run(
        [*capplan_command(), *line.split()],
        env={**os.environ, "XDG_CACHE_HOME": cache},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wall = time.perf_counter() - start
    after = os.times()
    if done.returncode not in (0, 1):
        sys.exit(f"`{line}` failed:\n{done.stderr.decode()}")
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def measure(repeat: int) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as cache:
        times_s("gpus --qps 100 --slo-ttft 400ms", cache)  # the points that are kept; byte code
        rounds = [
            {name: times_s(line, cache) for name, line in COMMANDS.items()} for _ in range(repeat)
        ]
    medians = {
        name: tuple(statistics.median(one[name][i] for one in rounds) for i in (0, 1))
        for name in COMMANDS
    }
    base_wall, base_cpu = medians["--version"]
    return [
        {
            "what": name,
            "command": f"capplan {COMMANDS[name]}",
            "wall_s": wall,
            "cpu_s": cpu,
            "wall_ratio": wall / base_wall,
            "cpu_ratio": cpu / base_cpu,
        }
        for name, (wall, cpu) in medians.items()
    ]


def table(rows: Sequence[dict[str, object]]) -> str:
    lines = [f"{'wall':>9} {'ratio':>7} {'cpu':>9} {'ratio':>7}  what"]
    lines += [
        f"{row['wall_s']:7.2f} s {row['wall_ratio']:7.1f} {row['cpu_s']:7.2f} s "
        f"{row['cpu_ratio']:7.1f}  {row['what']}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    options = asked(__doc__, 3)
    rows = measure(options.repeat)
    print(json.dumps(rows, indent=2) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
