"""Fitted constants into the YAML files that the program reads, and how many there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from performance_params import Name, World
from performance_rows import Row

from capplan.specs.architecture import FOLDER as ARCHITECTURES
from capplan.specs.architecture import ArchitectureSpec, KernelServing, load_architecture
from capplan.specs.engine_performance import FOLDER as ENGINES

LEAST = 0.02  # a correction below this is none
TITLE = "# Corrections by measured serving runs, written by benchmarks/fit_performance.py."


def write(theta: dict[Name, float], rows: Sequence[Row]) -> None:
    """Replace the `serving` block of each generation, and the rows of each engine family."""
    world = World(theta)
    steering = [row for row in rows if not row.is_suspect]
    num = 0
    for path in sorted(ARCHITECTURES.glob("*.yaml")):
        spec = load_architecture(path.stem)
        of = [row for row in steering if row.owners.arch == spec.name]
        lines, count = _serving(world.architecture(spec), of)
        num += count
        _replace_block(path, lines)
    for path in sorted(ENGINES.glob("*.yaml")):
        _count_engine_rows(path, steering)
    print(f"{num} constants that some row depends on")


def _serving(spec: ArchitectureSpec, rows: Sequence[Row]) -> tuple[list[str], int]:
    """The block, and how many of its figures stand on rows of this generation."""
    serving = spec.serving
    lines, count = ["serving:"], 0
    for name in ("fixed", "attention", "prefill", "launch", "latency", "link", "spread"):
        value = float(getattr(serving, name))
        if name in ("link", "spread") or abs(value - 1) > LEAST:
            lines.append(f"  {name}: {value:.3f}")
            count += bool(rows)
    formats = {row.owners.fmt[1] for row in rows}
    products = {name: _factors(factors) for name, factors in serving.products.items()}
    lines += ["  products:"] if any(products.values()) else []
    for name, factors in products.items():
        if factors:
            lines.append(f"    {name}: {{{', '.join(factors)}}}")
            count += len(factors) * (name in formats)
    known = {row.owners.moe[1:] for row in rows if row.owners.moe}
    experts = {
        family: {name: found for name, f in table.items() if (found := _factors(f))}
        for family, table in serving.experts.items()
    }
    lines += ["  experts:"] if any(experts.values()) else []
    for family, table in experts.items():
        if table:
            lines.append(f"    {family}:")
        for name, factors in table.items():
            lines.append(f"      {name}: {{{', '.join(factors)}}}")
            count += len(factors) * ((family, name) in known)
    lines.append(f"  rows: {len(rows)}")
    return lines, count


def _factors(factors: KernelServing) -> list[str]:
    values = {name: float(getattr(factors, name)) for name in ("compute", "bandwidth", "fixed")}
    return [f"{name}: {v:.3f}" for name, v in values.items() if abs(v - 1) > LEAST]


def _replace_block(path: Path, lines: Sequence[str]) -> None:
    text = re.sub(r"\n+# Corrections.*?(?=\nmost_tokens)", "\n", path.read_text(), flags=re.S)
    at = text.index("most_tokens")
    block = "\n".join([TITLE, *lines])
    path.write_text(f"{text[:at].rstrip()}\n\n{block}\n\n{text[at:]}")


def _count_engine_rows(path: Path, rows: Sequence[Row]) -> None:
    text = path.read_text()
    name = re.search(r"^name: (.*)$", text, re.M)
    assert name is not None
    num = sum(row.owners.eng == name[1] for row in rows)
    path.write_text(re.sub(r"^rows: .*$", f"rows: {num}", text, flags=re.M))
