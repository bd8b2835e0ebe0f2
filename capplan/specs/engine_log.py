"""Facts from the start-up log of vLLM, SGLang or TensorRT-LLM, as people paste it.

Colour codes, timestamps, rank prefixes, cut lines and several runs in one file are expected: what
is sound is read, and a line that names a figure without a readable number is listed. Of several
ranks the smallest pool decides, and the largest of what takes memory. Of several runs the last
one is read. "GB" in these logs means GiB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from capplan.errors import one_line
from capplan.specs.engine_log_patterns import (
    COUNTS,
    ENGINE_MARKS,
    GPU_NAMES,
    RUN_STARTS,
    SETTING,
    SETTING_LINES,
    SETTING_NAMES,
    SIZES,
    Pattern,
)
from capplan.units import parse_bytes

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|.)?")
_MAX_LINE = 20_000
_MAX_UNREAD = 20
_UNIT = {"GB": "GiB", "MB": "MiB"}


@dataclass(frozen=True)
class EngineLog:
    """What one start-up says. Sizes in bytes, by name (`engine_log_patterns.SIZES`), are of the
    rank that decides; ``settings`` are the engine's own texts, by our names.
    """

    engine: str | None
    version: str | None
    gpu: str | None
    sizes: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    num_runs: int = 1
    differing_ranks: tuple[str, ...] = ()  # figures that ranks print differently
    unread: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.sizes or self.counts)

    def setting_number(self, name: str) -> float | None:
        try:
            value = float(self.settings.get(name, ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None


def read_engine_log(text: str) -> EngineLog:
    """Read a pasted log; never fails, an empty one has no facts."""
    runs = _runs(_clean_lines(text))
    lines = runs[-1]
    unread: list[str] = []
    sizes = _figures(lines, SIZES, unread)
    counts = _figures(lines, COUNTS, unread)
    version = engine = None
    for name, marks in ENGINE_MARKS:
        for line in lines:
            for mark in marks:
                if found := mark.search(line):
                    engine = engine or name
                    version = version or found.groupdict().get("version")
    differing = (*_differing(sizes), *_differing(counts))
    return EngineLog(
        engine=engine,
        version=version.rstrip(".") if version else None,
        gpu=_gpu(lines),
        sizes={name: _decide(SIZES[name], values) for name, values in sizes.items()},
        counts={name: _decide(COUNTS[name], values) for name, values in counts.items()},
        settings=_settings(lines),
        num_runs=len(runs),
        differing_ranks=differing,
        unread=tuple(dict.fromkeys(unread))[:_MAX_UNREAD],
    )


def _clean_lines(text: str) -> list[str]:
    plain = _ESCAPES.sub("", text)
    return [line[:_MAX_LINE] for line in plain.splitlines() if line.strip()]


def _runs(lines: list[str]) -> list[list[str]]:
    """The lines of each run; a run begins where the first kind of start mark comes again."""
    for mark in RUN_STARTS:
        starts = [i for i, line in enumerate(lines) if mark.search(line)]
        if starts:
            break
    else:
        return [lines]
    # What stands before the first mark belongs to the first run.
    bounds = [0, *starts[1:], len(lines)]
    return [lines[a:b] for a, b in pairwise(bounds)]


def _figures(
    lines: Iterable[str], patterns: dict[str, Pattern], unread: list[str]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for line in lines:
        for name, pattern in patterns.items():
            if not pattern.phrase.search(line):
                continue
            matches = list(pattern.value.finditer(line))
            values = [v for v in map(_number, matches) if v is not None]
            found.setdefault(name, []).extend(values)
            if not values:
                unread.append(one_line(f"{name}: {line.strip()}", 120))
    return {name: values for name, values in found.items() if values}


def _number(match: re.Match[str]) -> float | None:
    text = match["number"].replace(",", "")
    unit = match.groupdict().get("unit")
    try:
        value = float(text)
        if unit is None:
            return value
        size = parse_bytes(f"{abs(value)} {_UNIT.get(unit, unit)}")
    except ValueError:
        return None
    return math.copysign(size, value)


def _decide(pattern: Pattern, values: list[float]) -> float:
    return {"min": min, "max": max}[pattern.of_ranks](values) if values else 0.0


def _differing(figures: dict[str, list[float]]) -> list[str]:
    return [name for name, values in figures.items() if max(values) > min(values)]


def _settings(lines: Iterable[str]) -> dict[str, str]:
    """Settings from the dumps of arguments; the first statement of each counts."""
    found: dict[str, str] = {}
    for line in lines:
        if not SETTING_LINES.search(line):
            continue
        for match in SETTING.finditer(line):
            name = SETTING_NAMES.get(match["name"])
            value = match["value"].strip("'\"")
            if name and value and value not in ("None", "auto", "null"):
                found.setdefault(name, one_line(value.removeprefix("torch."), 200))
    return found


def _gpu(lines: Iterable[str]) -> str | None:
    for line in lines:
        if found := GPU_NAMES.search(line):
            return found["gpu"].replace("_", " ").strip(" -")
    return None
