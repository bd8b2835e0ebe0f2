"""The error band of a prediction: from measured rows like it, of the narrowest kind there are.

Rows are told apart by the accelerator's generation, the engine's family, dense or experts, one
GPU or several, and load. Where too few are alike, one after another is given up (`kinds`), down
to rows of any kind; a generation that was never measured takes the widest band.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from capplan.results.bands import ErrorBand
from capplan.specs.error_bands import BandCell, BandTable, Figure, load_bands
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec

if TYPE_CHECKING:  # most answers take no calibration
    from capplan.performance.own_errors import OwnRuns

# From this share of what a replica can carry on, queues make small errors large.
LOADED_FRACTION = 0.85
_OTHER = "other"
_GENERATIONS = ("hopper", "blackwell", "ampere", "ada", "cdna", "volta", "turing", "gaudi", "tpu")


@dataclass(frozen=True, slots=True)
class BandKey:
    """What a prediction is like."""

    architecture: str
    engine: str
    experts: bool
    several_gpus: bool
    loaded: bool
    own: OwnRuns | None = None  # of a calibration


def band_key(
    model: ModelSpec,
    hardware: HardwareSpec,
    engine: str,
    num_gpus: int,
    utilisation: float,
    own: OwnRuns | None = None,
) -> BandKey:
    """``engine`` is a family: `vllm-v0`, `vllm-v1`, `tensorrt-llm`, `sglang`, ..;
    ``utilisation`` the offered load over what the replica can carry."""
    return BandKey(
        architecture=generation_of(hardware),
        engine=engine,
        experts=model.has_experts,
        several_gpus=num_gpus > 1,
        loaded=utilisation >= LOADED_FRACTION,
        own=own,
    )


def generation_of(hardware: HardwareSpec) -> str:
    """`Hopper (GH100)` -> `hopper`; `Blackwell Ultra` and the RTX PRO cards are Blackwell."""
    name = hardware.architecture.lower()
    return next((known for known in _GENERATIONS if known in name), _OTHER)


def band_for(figure: Figure, key: BandKey, table: BandTable | None = None) -> ErrorBand:
    """The band of a figure; never fails: without like rows it is the widest there is."""
    table = table or load_bands()
    if table is load_bands():
        return _shipped(figure, key)
    return find_band(figure, key, table)


@lru_cache(maxsize=4096)
def _shipped(figure: Figure, key: BandKey) -> ErrorBand:
    return find_band(figure, key, load_bands())


def find_band(figure: Figure, key: BandKey, table: BandTable) -> ErrorBand:
    """Of measured rows like it, drawn towards the errors of the user's own runs."""
    found = _find_cell(figure, key, table)
    return found if key.own is None else key.own.band(found, key.loaded)


def _find_cell(figure: Figure, key: BandKey, table: BandTable) -> ErrorBand:
    """The first cell that holds this kind, from the narrowest kind to any."""
    cells = [cell for cell in table.cells if cell.figure == figure]
    measured = any(cell.architecture == key.architecture for cell in cells)
    if not measured:
        low, high = min(cell.low for cell in cells), max(cell.high for cell in cells)
        rows = max(cell.rows for cell in cells)
        return ErrorBand(figure, low, high, table.coverage, rows, "any kind", is_measured=False)
    for kind in kinds(key):
        for cell in cells:
            if _kind_of(cell) == kind:
                like = describe(cell)
                return ErrorBand(figure, cell.low, cell.high, table.coverage, cell.rows, like, True)
    cell = next(cell for cell in cells if _kind_of(cell) == (None,) * 5)
    return ErrorBand(figure, cell.low, cell.high, table.coverage, cell.rows, "any kind", True)


Kind = tuple[str | None, str | None, bool | None, bool | None, bool | None]


def kinds(key: BandKey) -> list[Kind]:
    """The kinds that a key belongs to, narrowest first. The engine's family is kept longer than
    the accelerator: software of one age errs alike; load longest, as it says most."""
    arch, engine, experts, several, loaded = (
        key.architecture, key.engine, key.experts, key.several_gpus, key.loaded,
    )  # fmt: skip
    return [
        (arch, engine, experts, several, loaded),
        (arch, engine, experts, None, loaded),
        (None, engine, experts, several, loaded),
        (None, engine, experts, None, loaded),
        (None, engine, None, None, loaded),
        (None, None, experts, None, loaded),
        (None, None, None, None, loaded),
        (None, None, None, None, None),
    ]


def _kind_of(cell: BandCell) -> Kind:
    return cell.architecture, cell.engine, cell.experts, cell.several_gpus, cell.loaded


def describe(cell: BandCell) -> str:
    """`Hopper, vllm-v1, dense, one GPU, below 85 % load`."""
    words = []
    if cell.architecture:
        words.append(cell.architecture.capitalize())
    if cell.engine:
        words.append(cell.engine)
    if cell.experts is not None:
        words.append("experts" if cell.experts else "dense")
    if cell.several_gpus is not None:
        words.append("several GPUs" if cell.several_gpus else "one GPU")
    if cell.loaded is not None:
        share = f"{LOADED_FRACTION:.0%} load"
        words.append(f"{'from' if cell.loaded else 'below'} {share}")
    return ", ".join(words) or "any kind"
