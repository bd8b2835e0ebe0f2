"""Error bands on a screen: `20 to 28 ms`, what they rest on, and limits that lie inside."""

from __future__ import annotations

from collections.abc import Sequence

from capplan import units
from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.bands import BandedFigure, Range

# A band says how little is known: more digits would say more than that.
BAND_DIGITS = 2
THROUGHPUT, GPUS = "output_tokens_per_s", "num_gpus"
SERVED, GOODPUT, TO_BUY = "requests_per_s", "goodput_per_s", "num_gpus_rounded"
NAMES = {
    "ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "queue": "queue wait",
    "step": "step", THROUGHPUT: "output tok/s", SERVED: "served req/s", GOODPUT: "goodput req/s",
    GPUS: "GPUs", TO_BUY: "GPUs to get",
}  # fmt: skip
SECOND_HALF = "served_per_s"  # of the arrivals of a run
RATES, COUNTS = (THROUGHPUT, SERVED, GOODPUT, SECOND_HALF), (GPUS, TO_BUY)
# Whose band each takes, and whose words are said once.
_MAIN = {
    "itl": "tpot", "e2e": "tpot", "step": "tpot", "queue": "ttft", SERVED: THROUGHPUT,
    GOODPUT: THROUGHPUT, TO_BUY: GPUS,
}  # fmt: skip


def durations(low_s: float, high_s: float) -> str:
    """`20 to 28 ms`; both units where they differ."""
    low, high = (units.format_duration(value, digits=BAND_DIGITS) for value in (low_s, high_s))
    number, _, unit = low.rpartition(" ")
    return f"{number if unit == high.rpartition(' ')[2] else low} to {high}"


def band_text(band: BandedFigure) -> str:
    """Low to high, in the figure's unit."""
    if band.figure in COUNTS:
        return counts(band.low, band.high)
    if band.figure not in RATES:
        return durations(band.low, band.high)
    if band.low == band.high:
        return "as offered" if band.value else "0"  # far from full
    return rates(band.low, band.high)


def counts(low: float, high: float) -> str:
    """`13 to 19`; one number where they are the same."""
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def count_range(ends: Range) -> str:
    """The same of a cell."""
    return counts(ends.low, ends.high)


def rates(low_per_s: float, high_per_s: float) -> str:
    """`5.5 to 20`, without a unit."""
    low, high = (units.format_number(v, digits=BAND_DIGITS) for v in (low_per_s, high_per_s))
    return f"{low} to {high}"


def value_text(band: BandedFigure) -> str:
    """The figure itself."""
    if band.figure in COUNTS:
        return shows.plural(round(band.value), "GPU") + (" to get" * (band.figure == TO_BUY))
    if band.figure in RATES:
        shown = shows.tokens if band.figure == THROUGHPUT else shows.number
        return f"{shown(band.value)} {NAMES[band.figure]}"
    statistic = "" if band.statistic == "mean" else f" {band.statistic}"
    return f"{NAMES[band.figure]}{statistic} {shows.duration(band.value)}"


def coverage(bands: Sequence[BandedFigure]) -> str:
    """`80 %`."""
    return f"{bands[0].coverage_fraction * 100:g} %"


def find_band(bands: Sequence[BandedFigure], figure: str, statistic: str) -> BandedFigure | None:
    return next((b for b in bands if (b.figure, b.statistic) == (figure, statistic)), None)


def band_table(bands: Sequence[BandedFigure], statistics: Sequence[str]) -> Table:
    """One row a measure, one column a statistic."""
    columns = (
        Column("measure", "", right=False),
        *(Column(f"{s.lower()}_band", f"{s}\nlow to high") for s in statistics),
        Column("rows", "measured\nrows", shows.count),
    )
    rows = []
    for figure in dict.fromkeys(band.figure for band in bands if band.value):
        found = [find_band(bands, figure, statistic) for statistic in statistics]
        behind = next((band.rows for band in found if band is not None), None)
        if behind is not None:
            cells = ["" if band is None else band_text(band) for band in found]
            rows.append((NAMES[figure], *cells, behind))
    title = f"How sure ({coverage(bands)} bands: of five runs like this, four lay within)"
    return Table(title, columns, rows, note=behind_note(bands), in_tsv=False)


def one_each_table(bands: Sequence[BandedFigure]) -> Table:
    """One row a figure, its value beside the band."""
    columns = (
        Column("figure", "", right=False),
        Column("value", "predicted"),
        Column("band", "low to high"),
        Column("rows", "measured\nrows", shows.count),
    )
    rows = []
    for band in bands:
        is_count, is_mean = band.figure in COUNTS, band.statistic == "mean"
        name = NAMES[band.figure] + ("" if is_mean else f" {band.statistic}")
        value = shows.count(round(band.value)) if is_count else shows.duration(band.value)
        rows.append((name, value, band_text(band), band.rows))
    title = f"How sure ({coverage(bands)} bands: of five runs like this, four lay within)"
    return Table(title, columns, rows, note=behind_note(bands), in_tsv=False)


def behind_note(bands: Sequence[BandedFigure]) -> str:
    """What the bands rest on, measures that share it together."""
    behind: dict[str, list[str]] = {}
    figures = {band.figure for band in bands}
    for band in bands:
        if _MAIN.get(band.figure) in figures:
            continue
        name = "throughput" if band.figure == THROUGHPUT else NAMES[band.figure]
        if band.figure == GPUS:
            name = "GPUs, by throughput"
        if band.figure == "ttft" and band.statistic not in ("mean", "P50"):
            name = "TTFT above P50"
        named = behind.setdefault(band.words, [])
        if name not in named and not (name.startswith("TTFT") and "TTFT" in named):
            named.append(name)
    text = "; ".join(f"{', '.join(names)}: {words}" for words, names in behind.items())
    return f"{text}."


def inside_note(band: BandedFigure, limit_s: float) -> str | None:
    """Words where the limit lies inside the band."""
    if not band.low <= limit_s <= band.high:
        return None
    return (
        f"{value_text(band)}, {band_text(band)} ({coverage([band])}): the limit of "
        f"{shows.duration(limit_s)} lies inside; the verdict goes by {shows.duration(band.value)}."
    )


def bands_line(bands: Sequence[BandedFigure]) -> str:
    """`TPOT P99 24.1 ms, 20 to 28 ms; ..`, and what is behind."""
    figures = "; ".join(f"{value_text(band)}, {band_text(band)}" for band in bands)
    return f"{figures} ({coverage(bands)} bands). {behind_note(bands)}"
