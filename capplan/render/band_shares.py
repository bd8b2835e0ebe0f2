"""Bands as shares of the figures of a table, in one line under it."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render.bands import NAMES, coverage
from capplan.results.bands import BandedFigure

MOST_NAMED = 3  # rows of a kind that are listed
Named = tuple[str, Sequence[BandedFigure]]  # rows of a table, and the bands of their figures


def shares_note(rows: Sequence[Named]) -> str | None:
    """One line under a table whose columns share their bands, or a part for each kind of row.

    `80 % bands: TTFT -61 to +193 %, TPOT, ITL -22 to +25 %.`
    """
    alike: dict[str, list[Named]] = {}
    for name, bands in rows:
        if bands:
            alike.setdefault(_shares(bands), []).append((name, bands))
    if not alike:
        return None
    most = max(len(found) for found in alike.values())
    groups = [
        (_names(found, is_rest=len(found) == most > MOST_NAMED), text + _of_whole_answers(found))
        for text, found in sorted(alike.items(), key=lambda item: len(item[1]) == most)
    ]
    first = next(bands for _, bands in rows if bands)
    if len(groups) == 1:
        return f"{coverage(first)} bands: {groups[0][1]}."
    return f"{coverage(first)} bands. " + " ".join(f"{name}: {text}." for name, text in groups)


def _names(rows: Sequence[Named], *, is_rest: bool) -> str:
    return "The others" if is_rest else ", ".join(name for name, _ in rows)


def _shares(bands: Sequence[BandedFigure]) -> str:
    """How far each figure may be off, figures and statistics that share it together."""
    by_share: dict[str, list[BandedFigure]] = {}
    shares: dict[str, set[str]] = {}
    for band in bands:
        if band.value and band.figure != "e2e":
            share = share_text(band)
            by_share.setdefault(share, []).append(band)
            shares.setdefault(band.figure, set()).add(share)
    parts = []
    for share, found in by_share.items():
        names: dict[str, list[str]] = {}
        for band in found:
            several = len(shares[band.figure]) > 1
            names.setdefault(NAMES[band.figure], []).extend([band.statistic] if several else [])
        told = (f"{name} {'/'.join(which)}".strip() for name, which in names.items())
        parts.append(f"{', '.join(told)} {share}")
    return ", ".join(parts)


def _of_whole_answers(rows: Sequence[Named]) -> str:
    """Whole answers mix two bands, each in its own proportion: the widest of the rows."""
    whole = [b for _, bands in rows for b in bands if b.figure == "e2e" and b.value]
    if not whole:
        return ""
    low = min(whole, key=lambda band: band.low / band.value)
    high = max(whole, key=lambda band: band.high / band.value)
    share = shares_text(low.low / low.value, high.high / high.value)
    return f", E2E {'' if len(whole) == 1 else 'within '}{share}"


def share_text(band: BandedFigure) -> str:
    """`-22 to +25 %`."""
    if band.low == band.high:
        return "as offered"
    return shares_text(band.low / band.value, band.high / band.value)


def shares_text(low_ratio: float, high_ratio: float) -> str:
    low, high = (100 * (ratio - 1) for ratio in (low_ratio, high_ratio))
    return f"{low:+.0f} to {high:+,.0f} %"
