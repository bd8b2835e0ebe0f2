"""The ```console blocks of README and docs: found, run, and brought up to date.

In a block a line of three dots stands for any lines, and `(exit code N)` shows a code that is not
0. Commands run 80 columns wide, as on a terminal; `| cat` is piped, `> FILE` goes to a file. They
run from the repository's root; a page that has the line IN_ORDER runs as a reader would type it:
whole, in order, in an empty folder of its own, where `sed` works too.

    python tests/console_blocks.py docs/tour.md     # writes today's output into the blocks; all
                                                    # pages without a name
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from capplan.cli.environment import Environment
from capplan.cli.run import run

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
IN_ORDER = "<!-- these commands run in order, in an empty folder -->"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


class Command(NamedTuple):
    line: str
    expected: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runs_in_order(page: Path) -> bool:
    return IN_ORDER in page.read_text(encoding="utf-8")


def commands(page: Path) -> Iterator[Command]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, expected = part.partition("\n")
            yield Command(line, expected.rstrip("\n"))


def shown(line: str) -> str:
    """What a terminal in the current folder shows after a command."""
    left, _, target = line.partition(" > ")
    left, _, piped = left.partition(" | cat")
    words = shlex.split(left)
    if words[0] == "sed":
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        code, said = 0, ""
    else:
        assert words[0] == "capplan", line
        out, err = io.StringIO(), io.StringIO()
        is_terminal = left == line and not piped
        code = run(words[1:], Environment(out, err, 80, is_terminal=is_terminal, colour=False))
        text, said = out.getvalue(), err.getvalue()
    if target:
        Path(target).write_text(text, encoding="utf-8")
        text = ""
    return (text + said).rstrip("\n") + (f"\n(exit code {code})" if code else "")


def agrees(expected: str, found: str) -> bool:
    """Whether the parts between the dots stand in the output, in order and at its ends."""
    lines = found.split("\n")
    parts: list[list[str]] = [[]]
    for line in expected.split("\n"):
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    first, *others = parts
    if not others:
        return lines == first
    if lines[: len(first)] != first:
        return False
    at = len(first)
    *middle, last = others
    for part in middle:  # the earliest place leaves most room for what follows
        places = range(at, len(lines) - len(part) + 1)
        at = next((i + len(part) for i in places if lines[i : i + len(part)] == part), -1)
        if at < 0:
            return False
    return len(lines) - len(last) >= at and lines[len(lines) - len(last) :] == last


def _brought_up_to_date(expected: str, found: str) -> str:
    """The lines that a block shows as they are today; what it leaves out stays left out."""
    if agrees(expected, found):
        return expected
    actual = found.split("\n")
    lines = expected.split("\n")
    place = _places([line for line in lines if line != "..."], actual)
    kept: list[str] = []
    last, left_out, number = -1, False, 0
    for line in lines:
        if line == "...":
            left_out = True
            continue
        at = place.get(number)
        number += 1
        if at is None:
            continue
        kept += ["..."] if left_out else actual[last + 1 : at]
        kept.append(actual[at])
        last, left_out = at, False
    return "\n".join(kept + (["..."] if left_out else actual[last + 1 :]))


def _places(old: list[str], new: list[str]) -> dict[int, int]:
    """Which new line each old one has become: the best pairing that keeps the order."""
    like = [[_likeness(a, b) for b in new] for a in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            best[i][j] = max(best[i][j + 1], best[i + 1][j], like[i][j] + best[i + 1][j + 1])
    place, i, j = {}, 0, 0
    while i < len(old) and j < len(new):
        if like[i][j] > 0 and best[i][j] == like[i][j] + best[i + 1][j + 1]:
            place[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return place


def _likeness(old: str, new: str) -> float:
    """Of two lines whose figures may differ; below 0 where they are not the same line."""
    if not old.strip() or not new.strip():
        return 0.6 if old.strip() == new.strip() else -1.0
    figures = r"[\d.,]+( (ms|s|us|min|%))?"
    pair = [re.sub(figures, "#", line).split() for line in (old, new)]
    ratio = SequenceMatcher(None, *pair).ratio()
    return ratio + 0.3 if ratio > 0.5 else -1.0


def update(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as empty, chdir(empty if runs_in_order(page) else ROOT):
        for line, expected in commands(page):
            found = shown(line)
            fresh = _brought_up_to_date(expected, found)
            if fresh == expected:
                continue
            said = "updated" if agrees(fresh, found) else "edit by hand"
            print(f"{said}: {name_of(page)}: $ {line}")
            # A command may stand twice, as in an order of commands that change a file.
            old = f"$ {line}\n{expected}"
            assert old in text, line
            text = text.replace(old, f"$ {line}\n{fresh}", 1)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("CAPPLAN_PATH", None)
    wanted = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for each in wanted:
        update(each)
