"""Replay recorded runs of an engine's scheduler and compare every field of every step.

    python benchmarks/engine_traces.py DIR_OR_ARCHIVE...

Each argument is a folder of scenario files, or a .tar.xz of them. Exit code 1 if any differs.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.simulator.traces import first_difference, replay


def scenarios(place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file name, scenario) in order of name."""
    if place.is_dir():
        for path in sorted(place.rglob("*.json")):
            yield path.name, json.loads(path.read_text(encoding="utf-8"))
        return
    with tarfile.open(place) as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            data = archive.extractfile(member)
            if data is not None:
                yield member.name, json.load(data)


def main(places: list[str]) -> int:
    if not places:
        print(__doc__, file=sys.stderr)
        return 2
    identical = different = 0
    for place in places:
        for name, scenario in scenarios(Path(place)):
            if "steps" not in scenario:
                continue
            try:
                difference = first_difference(scenario, replay(scenario))
            except Exception as error:  # a replay that breaks is a difference like any other
                difference = f"{type(error).__name__}: {error}"
            if difference is None:
                identical += 1
                print(f"identical  {name}  {len(scenario['steps'])} steps")
            else:
                different += 1
                print(f"different  {name}  {difference}")
    print(f"{identical} identical, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
