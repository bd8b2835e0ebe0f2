"""Fitted constants into the YAML files that the program reads, and how many there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from performance_params import OWN, Name, World
from performance_rows import Row

from capplan.performance.engine_families import engine_overheads
from capplan.specs.architecture import FOLDER as ARCHITECTURES
from capplan.specs.architecture import ArchitectureSpec, KernelServing, load_architecture
from capplan.specs.engine_performance import FOLDER as ENGINES
from capplan.specs.engine_performance import load_engine_performance

LEAST = 0.02  # a correction below this is none
TITLE = "# Corrections by measured serving runs, written by benchmarks/fit_performance.py."


def write(theta: dict[Name, float], rows: Sequence[Row]) -> None:
    """Replace the `serving` block of each generation, and the figures of each engine family."""
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
        num += _write_engine(path, world, steering)
    print(f"{num} constants that some row depends on")


def _serving(spec: ArchitectureSpec, rows: Sequence[Row]) -> tuple[list[str], int]:
    """The block, and how many of its figures stand on rows of this generation."""
    serving = spec.serving
    lines, count = ["serving:"], 0
    for name in ("fixed", "attention", "prefill", "launch", "latency", "link"):
        value = float(getattr(serving, name))
        if name == "link" or abs(value - 1) > LEAST:
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


def _write_engine(path: Path, world: World, rows: Sequence[Row]) -> int:
    text = path.read_text()
    name = re.search(r"^name: (.*)$", text, re.M)
    assert name is not None
    spec = next(spec for spec in load_engine_performance() if spec.name == name[1])
    found = world.engine(engine_overheads(spec))
    figures = {
        "step": f"{found.step_s * 1e3:.3g} ms",
        "sequence": f"{found.sequence_s * 1e6:.3g} us",
        "launch_per_layer": f"{found.launch_s_per_layer * 1e3:.3g} ms",
        "fixed_factor": f"{found.fixed_factor:.3g}",
        "latency_factor": f"{found.latency_factor:.3g}",
        "front_end": f"{found.front_end_s * 1e3:.3g} ms",
        "prompt_token": f"{found.prompt_token_s * 1e6:.3g} us",
        "rows": str(Counter(row.owners.eng for row in rows)[spec.name]),
    }
    for field, value in figures.items():
        if field.endswith("_factor") and "." not in value:
            value += ".0"
        line = f"{field}: {value}"
        if re.search(rf"^{field}: ", text, re.M):
            text = re.sub(rf"^{field}: .*$", line, text, flags=re.M)
        else:
            text = text.replace("sources:", f"{line}\nsources:", 1)
    path.write_text(text)
    return len(OWN["eng"])
