"""Mutated manifests: no traceback, no hang, bounded memory.

    python tests/fuzz_check.py [--cases 20000] [--seed 0] [DIR ...]

Mutates the manifests of `tests/check/manifests` (and of each DIR): lines and characters are
dropped, doubled, swapped, replaced and cut; indentation, quotes, brackets, anchors and templates
are broken. Every case is read and checked whole. Prints the slowest case and the peak memory.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from capplan.check.config import Config
from capplan.check.run import check_source, summary_of
from capplan.check.source import Source

HERE = Path(__file__).resolve().parent
MANIFESTS = HERE / "check" / "manifests"
_BITS = (
    "{{ .Values.x }}", "{{- if .Values.a }}", "${A:-${B:-1}}", "$((1 + ", "$(", "`", "'", '"', "\\",
    "&a", "*a", "<<: *a", "[", "]", "{", "}", ": ", "- ", "\t", "\n---\n", "#", "|", ">", "%",
    "\x00", "\u2028", "\ue000", "\ufffc", "--max-model-len=", "-1", "1e309", "9" * 400, "é", "\r\n",
    "!!python/object:os.system", "0x1F", "<<EOF\n", "if [ x ]; then\n", "A=(", "${A[@]}", "$@",
    "NaN",
)  # fmt: skip


def mutate(text: str, stream: random.Random) -> str:
    """A few random changes; the same for the same stream."""
    for _ in range(stream.randint(1, 6)):
        lines = text.split("\n")
        i, j = stream.randrange(len(lines)), stream.randrange(len(lines))
        kind = stream.randrange(9)
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines.insert(j, lines[i])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 3:
            lines[i] = " " * stream.randrange(8) + lines[i].lstrip()
        elif kind == 4:
            at = stream.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:at] + stream.choice(_BITS) + lines[i][at:]
        elif kind == 5 and lines[i]:
            at = stream.randrange(len(lines[i]))
            lines[i] = lines[i][:at] + lines[i][at + 1 :]
        elif kind == 6:
            key, colon, _ = lines[i].partition(":")
            lines[i] = key + colon + " " + stream.choice(_BITS)
        elif kind == 7:
            lines = lines[: i + 1]
        else:
            low, high = sorted((i, j))
            lines[low:high] = lines[low:high] * stream.choice((0, 2, 3))
        text = "\n".join(lines)[:200_000]
        if not text:
            return "x"
    return text


def corpus(folders: list[Path]) -> list[tuple[str, str]]:
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size < 60_000 and path.suffix != ".csv":
                found.append((path.name, path.read_text(encoding="utf-8", errors="replace")))
    return found


def cases(folders: list[Path], num: int, seed: int) -> Iterator[tuple[int, str, str]]:
    files = corpus(folders)
    for case in range(num):
        stream = random.Random(f"{seed}/{case}")
        name, text = stream.choice(files)
        yield case, name, mutate(text, stream)


def check_one(name: str, text: str) -> tuple[int, int]:
    """Check a case whole; how many deployments and findings it has."""
    source = Source(name, text)
    checked = check_source(source, Config(), {})
    for case in checked.cases:
        summary_of(case)
    for finding in checked.findings:
        assert 1 <= finding.line <= source.num_lines
        assert finding.column >= 1
        assert finding.message.isprintable()
    return len(checked.cases), len(checked.findings)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folders", nargs="*", type=Path)
    given = parser.parse_args()
    slowest, worst = 0.0, ""
    num_read = num_found = 0
    for case, name, text in cases([MANIFESTS, *given.folders], given.cases, given.seed):
        start = time.perf_counter()
        try:
            read, found = check_one(name, text)
        except Exception:
            print(f"case {case} of {name} (seed {given.seed}) fails:", file=sys.stderr)
            Path("fuzz_case.txt").write_text(text, encoding="utf-8")
            raise
        num_read, num_found = num_read + read, num_found + found
        taken = time.perf_counter() - start
        if taken > slowest:
            slowest, worst = taken, f"case {case} of {name}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.cases} cases, {num_read} deployments, {num_found} findings, no failure")
    print(f"slowest {slowest:.2f} s ({worst}); peak memory {peak:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
