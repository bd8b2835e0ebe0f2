"""The shipped table of error bands: `capplan/bands/error_bands.json`.

`benchmarks/error_bands.py` writes it from the errors on measured rows. JSON, as every answer reads
it: YAML of that size takes a tenth of a start.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict

from capplan.specs.fields import Count, Flag, Fraction, Sources, Spec, Text

FILE = Path(__file__).resolve().parent.parent / "bands" / "error_bands.json"
Figure = Literal["tpot", "ttft", "ttft_p99", "throughput"]
Ratio = Annotated[float, Strict(), Field(gt=0, lt=1000, allow_inf_nan=False)]


class BandCell(Spec):
    """One band; a field that is left out stands for every value."""

    figure: Figure
    architecture: Text | None = None  # the generation: "Hopper"
    engine: Text | None = None  # the family: "vllm-v1"
    experts: Flag | None = None
    several_gpus: Flag | None = None
    loaded: Flag | None = None  # at 85 % of what it can carry, or above
    low: Ratio
    high: Ratio
    rows: Count


class BandTable(Spec):
    coverage: Fraction
    sources: Sources
    note: Text | None = None
    cells: Annotated[tuple[BandCell, ...], Field(min_length=1)]


@cache
def load_bands() -> BandTable:
    """The table as shipped."""
    return BandTable.model_validate_json(FILE.read_text(encoding="utf-8"))
