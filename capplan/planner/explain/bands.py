"""The ends of error bands, explained: how far measured servers like this one were off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capplan.planner.explain.figure import figure
from capplan.results.bands import BandedFigure, ErrorBand
from capplan.results.explanation import Figure, Symbol

_SOURCE = "docs/accuracy.md, Error bands; docs/calibrate.md"
_NAMES = {
    "ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E",
    "output_tokens_per_s": "output tokens a second",
}  # fmt: skip


def count_band_figures(
    counted: BandedFigure,
    throughput: ErrorBand,
    rate_per_s: float,
    carried_per_s: float,
    each: int,
    least: int = 0,
) -> Iterator[Figure]:
    """GPUs if a replica of ``each`` carries what the ends of throughput's band say.

    ``least`` are needed however quick they are.
    """
    for end, limit, value, ratio in (
        ("fewest", "min", counted.low, throughput.high_ratio),
        ("most", "max", counted.high, throughput.low_ratio),
    ):
        needed = "ceil(rate / (carried × ratio)) × each"
        symbols = [
            Symbol("gpus", "as predicted", counted.value, ""),
            Symbol("rate", "offered at the peak", rate_per_s, "req/s"),
            Symbol("carried", "by a replica, as predicted", carried_per_s, "req/s"),
            Symbol("ratio", "measured over predicted throughput, at this end", ratio, ""),
            Symbol("each", "GPUs a replica", each, ""),
        ]
        if least and limit == "min":
            needed = f"max(memory, {needed})"
            symbols.append(Symbol("memory", "GPUs that memory asks for", least, ""))
        yield figure(
            f"{end} GPUs of the band",
            value,
            "",
            f"{end} = {limit}(gpus, {needed})",
            symbols,
            why="A plan is worth what its error is worth: of five servers like it four lie within.",
            picture="The same sum for a server that turns out quicker, or slower, than predicted.",
            check=f"Behind it: {throughput.words}.",
            source=_SOURCE,
        )


def value_band_figures(bands: Sequence[BandedFigure]) -> Iterator[Figure]:
    """Both ends of latencies and throughput; of whole answers where their parts are there."""
    by_name = {(band.figure, band.statistic): band for band in bands}
    for band in bands:
        if band.figure not in _NAMES or not band.value:
            continue
        parts = (by_name.get(("ttft", band.statistic)), by_name.get(("tpot", band.statistic)))
        for end in ("low", "high"):
            if band.figure != "e2e":
                yield _end(band, end)
            elif parts[0] is not None and parts[1] is not None:
                yield _whole(band, parts[0], parts[1], end)


def _name(band: BandedFigure) -> str:
    rate = band.figure.endswith("_per_s")
    return _NAMES[band.figure] + ("" if rate else f" {band.statistic}")


def _ratio(band: BandedFigure, end: str) -> float:
    value: float = getattr(band, end)
    return value / band.value


def _end(band: BandedFigure, end: str) -> Figure:
    unit = "tokens/s" if band.figure.endswith("_per_s") else "s"
    return figure(
        f"band of {_name(band)}: {end} end",
        getattr(band, end),
        unit,
        f"{end} = value × ratio",
        [
            Symbol("value", "as predicted", band.value, unit),
            Symbol("ratio", "measured over predicted, at this end", _ratio(band, end), ""),
        ],
        why="Where a limit lies inside the band, a measured server may land on either side of it.",
        picture="A thermometer with its tolerance printed on the back.",
        check=f"Behind it: {band.words}.",
        source=_SOURCE,
    )


def _whole(band: BandedFigure, ttft: BandedFigure, tpot: BandedFigure, end: str) -> Figure:
    return figure(
        f"band of {_name(band)}: {end} end",
        getattr(band, end),
        "s",
        f"{end} = first × early + (value - first) × later",
        [
            Symbol("first", "the first token, as predicted", min(ttft.value, band.value), "s"),
            Symbol("early", "TTFT measured over predicted", _ratio(ttft, end), ""),
            Symbol("value", "the whole answer, as predicted", band.value, "s"),
            Symbol("later", "TPOT measured over predicted", _ratio(tpot, end), ""),
        ],
        why="Whole answers are a first token and those after it, each with an error of its own.",
        picture="Waiting for a table, and the courses that follow.",
        check=f"Behind it: {band.words}.",
        source=_SOURCE,
    )
