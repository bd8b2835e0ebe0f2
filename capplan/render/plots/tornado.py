"""How the count moves when one thing is otherwise: bars, the longest at the top."""

from __future__ import annotations

from dataclasses import replace

from capplan.render import shows
from capplan.render.plots.chart import Axis, Bars, Dots, Ink, Mark, Panel, Plot, Rule
from capplan.render.plots.ticks import linear, rows
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.sizing import Variation

LEAST_COLUMNS = 44  # of the canvas, in a terminal of 60
_Bar = tuple[tuple[float, float, float], str]  # row, from, to; what stands at its end


def tornado_plot(result: GpusResult, inputs: GpusInputs) -> Plot | None:
    """None where nothing was varied."""
    sizing, base = result.sizing, result.num_gpus
    if sizing is None or base is None or not sizing.variations:
        return None
    groups = _groups(sizing.variations, base)
    axis = rows([_name(group[0]) for group in groups])
    marks = _marks(groups, base, [row for row, _ in axis.ticks])
    return Plot(
        name="tornado",
        finding=_finding(groups, base),
        subject=f"{inputs.model_name} on {result.hardware}, "
        f"{shows.rate(inputs.arrival_rate_per_s)}; one thing otherwise at a time",
        panels=(
            Panel(
                x=_gpus(marks, base),
                y=axis,
                marks=marks,
            ),
        ),
        height_in=1.9 + 0.42 * len(groups),
    )


def _groups(variations: tuple[Variation, ...], base: int) -> list[list[Variation]]:
    """Variations of one thing together, by how far they move the count."""
    found: dict[str, list[Variation]] = {}
    for each in variations:
        found.setdefault(each.key, []).append(each)
    most = max(abs(v.num_gpus - base) for v in variations if v.num_gpus is not None)

    def moved(group: list[Variation]) -> int:
        return max(most + 1 if v.num_gpus is None else abs(v.num_gpus - base) for v in group)

    return sorted(found.values(), key=lambda group: -moved(group))


def _marks(groups: list[list[Variation]], base: int, places: list[float]) -> list[Mark]:
    """Values on one side of the count lie in each other: the farthest first, the nearer over it."""
    more: list[_Bar] = []
    less: list[_Bar] = []
    same: list[tuple[tuple[float, float], str]] = []
    for row, group in zip(places, groups, strict=True):
        for side, bars in ((1, more), (-1, less)):
            ends = {v.num_gpus for v in group if v.num_gpus and side * (v.num_gpus - base) > 0}
            text = "; ".join(f"{_values(group, end)}: {end:,}" for end in sorted(ends))
            for end in sorted(ends, key=lambda num: -abs(num - base)):
                bars.append(((row, float(base), float(end)), text))
                text = ""  # at the longest of them
        if any(v.num_gpus == base for v in group):
            same.append(((float(base), row), f"{_values(group, base)}: {base:,}"))
        if any(v.num_gpus is None for v in group):
            same.append(((float(base), row), f"{_values(group, None)}: no number is enough"))
    marks: list[Mark] = []
    if more:
        marks.append(_bars(more, "red", "█", "more GPUs", "//"))
    if less:
        marks.append(_bars(less, "blue", "▒", "fewer GPUs", ""))
    marks.append(Rule("x", base, "ink", "solid", f"as asked: {shows.plural(base, 'GPU')}"))
    if same:
        marks.append(Dots([p for p, _ in same], "ink", "circle", None, False, [t for _, t in same]))
    return marks


def _gpus(marks: list[Mark], base: int) -> Axis:
    """As much wider than the bars as their labels need, in a terminal of 60 columns too."""
    low = high = float(base)
    left = right = 0
    for mark in marks:
        if isinstance(mark, Bars):
            ends = [end for _, _, end in mark.bars]
            low, high = min([low, *ends]), max([high, *ends])
            most = max(map(len, mark.labels)) + 2
            left, right = (max(left, most), right) if ends[0] < base else (left, max(right, most))
        elif isinstance(mark, Dots):
            left = max(left, *(len(label) + 3 for label in mark.labels))
    whole = max(high - low, 1.0) / max(0.2, 1 - (left + right) / LEAST_COLUMNS)
    low -= whole * left / LEAST_COLUMNS
    axis = linear("GPUs", low, low + whole, whole=True)
    return replace(axis, ticks=tuple(tick for tick in axis.ticks if tick[0] >= 0))


def _bars(found: list[_Bar], colour: Ink, letter: str, name: str, hatch: str) -> Bars:
    labels = [text for _, text in found]
    return Bars([bar for bar, _ in found], colour, letter, name, hatch, labels=labels)


def _name(variation: Variation) -> str:
    return "model's error" if variation.key == "model" else variation.what


def _values(group: list[Variation], num_gpus: int | None) -> str:
    return ", ".join(v.value for v in group if v.num_gpus == num_gpus)


def _finding(groups: list[list[Variation]], base: int) -> str:
    first = groups[0]
    worst = max(first, key=lambda v: float("inf") if v.num_gpus is None else abs(v.num_gpus - base))
    case = f"{worst.what} ({worst.value})"
    asked = f"{shows.plural(base, 'GPU')} as asked"
    if worst.num_gpus is None:
        return f"{asked}; no number is enough with {case}"
    if worst.num_gpus == base:
        return f"{asked}, whatever of these is otherwise"
    counts = [v.num_gpus for group in groups for v in group if v.num_gpus is not None]
    return (
        f"{asked}, {min([base, *counts]):,} to {max([base, *counts]):,} when one thing is "
        f"otherwise; most by: {case}"
    )
