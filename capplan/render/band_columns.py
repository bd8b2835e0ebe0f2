"""Bands for programs: the low and the high end, in columns behind their figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from capplan.render.bands import COUNTS, RATES
from capplan.results.bands import BandedFigure


def value_key(band: BandedFigure) -> str:
    """The machine's name of a figure: `ttft_p99_s`, `tpot_mean_s`, `output_tokens_per_s`."""
    if band.figure in (*RATES, *COUNTS):
        return band.figure
    statistic = band.statistic.lower().replace(".", "_").replace(" ", "_")
    return f"{band.figure}_{statistic}_s"


def end_keys(key: str) -> tuple[str, str]:
    """Of the ends of its band, the unit last: `ttft_p99_low_s`, `ttft_p99_high_s`.

    >>> end_keys("output_tokens_per_s"), end_keys("num_gpus")
    (('output_tokens_low_per_s', 'output_tokens_high_per_s'), ('num_gpus_low', 'num_gpus_high'))
    """
    for unit in ("_per_s_per_gpu", "_per_s", "_s"):
        if key.endswith(unit):
            stem = key.removesuffix(unit)
            return f"{stem}_low{unit}", f"{stem}_high{unit}"
    return f"{key}_low", f"{key}_high"


def with_ends(
    row: Mapping[str, Any],
    bands: Sequence[BandedFigure],
    also: Collection[str] = (),
    called: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A row for programs; the ends of its bands follow each figure that may have one.

    ``also`` are columns that have one beside latencies and rates; ``called`` those whose name is
    not their figure's, by `value_key`.
    """
    names = called or {}
    ends = {names.get(key := value_key(band), key): (band.low, band.high) for band in bands}
    for key, value in row.items():
        # TTFT as a server counts it errs as TTFT as a user does.
        seen = row.get(key.removeprefix("attempt_"))
        if key.startswith("attempt_") and value and seen:
            low, high = ends.get(key.removeprefix("attempt_"), (seen, seen))
            ends[key] = (low * value / seen, high * value / seen)
    found: dict[str, Any] = {}
    for key, value in row.items():
        found[key] = value
        if key in ends or key in also or _is_banded(key):
            low, high = ends.get(key, (None, None))
            found.update(zip(end_keys(key), (low, high), strict=True))
    return found


def _is_banded(key: str) -> bool:
    """Whether a column may have a band: it has the ends in every row then, if empty."""
    return key in RATES or (
        key.endswith("_s")
        and key.removeprefix("attempt_").split("_")[0] in ("ttft", "tpot", "itl", "e2e", "queue")
    )
