"""The roofs of one or more GPUs, and where prefill and decode stand under them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from capplan.render import shows
from capplan.render.plots.chart import Dots, Ink, Line, Mark, Panel, Plot, Point, Shape
from capplan.render.plots.ticks import logarithmic
from capplan.results.roofline import GpuRoofline, RooflineKernel, RooflinePoint
from capplan.units import TERA

# Of the first GPU, the second ..: further ones start again.
INKS: tuple[Ink, ...] = ("ink", "blue", "red", "green", "purple", "orange")
SHAPES: dict[str, Shape] = {"decode": "circle", "prefill": "triangle"}


def roofline_plot(results: Sequence[GpuRoofline]) -> Plot:
    """One model on one or more GPUs."""
    alone = len(results) == 1
    low, high = _intensities(results)
    peaks = [result.peak_flops_per_s for result in results]
    slowest = min(result.derated_bandwidth_bytes_per_s for result in results)
    marks: list[Mark] = []
    for index, result in enumerate(results):
        ink = INKS[index % len(INKS)]
        marks += _roofs(result, ink, low, high, is_first=not index, is_alone=alone)
    for index, result in enumerate(results):
        ink = INKS[index % len(INKS)]
        dots = _kernel_dots if result.kernels else _dots
        marks += dots(result, ink, is_first=not index, is_alone=alone)
    first = results[0]
    names = " and ".join(result.hardware for result in results)
    return Plot(
        name="roofline",
        finding=_finding(results),
        subject=f"{first.model} in {first.dtype} on {names}"
        + (f", tensor parallelism {first.tp}" if first.tp > 1 else ""),
        panels=(
            Panel(
                x=logarithmic("operational intensity (FLOP/byte)", low, high),
                y=logarithmic(
                    "attainable (TFLOP/s a GPU)",
                    low * slowest / TERA / 1.2,
                    max(peaks) / TERA * (1.6 if alone else 2.5),
                ),
                marks=marks,
            ),
        ),
    )


def _intensities(results: Sequence[GpuRoofline]) -> tuple[float, float]:
    """A range that holds every point and both sides of each ridge."""
    ridges = [result.ridge_flop_per_byte for result in results]
    points = [p.intensity_flop_per_byte for result in results for p in result.points]
    kernels = (k.intensity_flop_per_byte for result in results for k in result.kernels)
    points += [intensity for intensity in kernels if intensity]
    return min(min(ridges) / 100, min(points) / 1.5), max(4 * max(ridges), 1.5 * max(points))


def _roofs(
    result: GpuRoofline, colour: Ink, low: float, high: float, *, is_first: bool, is_alone: bool
) -> list[Mark]:
    """The legend says once what the strokes mean; of several GPUs each has its name on its roof."""

    def roof(peak: float, bandwidth: float) -> tuple[Point, ...]:
        ridge = peak / bandwidth
        return ((low, low * bandwidth / TERA), (ridge, peak / TERA), (high, peak / TERA))

    ideal = roof(result.peak_flops_per_s, result.bandwidth_bytes_per_s)
    derated = roof(result.derated_peak_flops_per_s, result.derated_bandwidth_bytes_per_s)
    label = None if is_alone else result.hardware
    return [
        Line(derated, colour, "dashed", "as measured" if is_first else None),
        Line(ideal, colour, "solid", "data sheet" if is_first else None, label),
    ]


def _dots(result: GpuRoofline, colour: Ink, *, is_first: bool, is_alone: bool) -> list[Mark]:
    """Decode filled at the shortest context, hollow at longer ones; prefill by its tokens."""
    decode = [point for point in result.points if point.phase == "decode"]
    prefill = [point for point in result.points if point.phase == "prefill"]
    shortest = min((point.context_tokens for point in decode), default=0)
    short = [point for point in decode if point.context_tokens == shortest]
    longer = [point for point in decode if point.context_tokens > shortest]
    marks: list[Mark] = []
    for own, points, name, is_hollow, labels in (
        ("red", longer, "decode at longer contexts", True, ()),
        ("red", short, f"decode at {shortest:,} tokens", False, [*map(_batch, short)]),
        ("blue", prefill, "prefill, by tokens", False, [*map(_tokens, prefill)]),
    ):
        if points:
            ink: Ink = own if is_alone else colour  # type: ignore[assignment]
            marks.append(
                Dots(
                    [_place(point) for point in points],
                    ink,
                    SHAPES[points[0].phase],
                    name if is_first else None,
                    is_hollow,
                    labels if is_alone else (),
                )
            )
    return marks


def _kernel_dots(result: GpuRoofline, colour: Ink, *, is_first: bool, is_alone: bool) -> list[Mark]:
    """Kernels in place of steps; those of the largest decode batch have their names."""
    marks: list[Mark] = []
    inks: dict[str, Ink] = {"decode": "red", "prefill": "blue"}
    for phase in ("decode", "prefill"):
        found = [k for k in result.kernels if k.phase == phase and k.intensity_flop_per_byte]
        most = max((k.num_sequences for k in found), default=0)
        first = min((k.context_tokens for k in found if k.num_sequences == most), default=0)
        for is_named in (False, True):
            own = [k for k in found if is_named is _is_at(k, most, first)]
            if not own:
                continue
            named = f"{phase}, batch {most:,} at {first:,} tokens"
            places = [
                (k.intensity_flop_per_byte or 0.0, k.attainable_flop_per_s or 0.0) for k in own
            ]
            has_names = is_alone and is_named and phase == "decode"
            marks.append(
                Dots(
                    [(x, reach / TERA) for x, reach in places],
                    inks[phase] if is_alone else colour,
                    SHAPES[phase],
                    f"kernels of {named if is_named else 'other ' + phase}" if is_first else None,
                    not is_named,
                    _names(own) if has_names else (),
                )
            )
    return marks


def _is_at(kernel: RooflineKernel, num_sequences: int, context_tokens: int) -> bool:
    return (kernel.num_sequences, kernel.context_tokens) == (num_sequences, context_tokens)


def _names(kernels: Sequence[RooflineKernel]) -> list[str]:
    """One label for those that stand at one place, at the first of them."""
    together: dict[int, list[str]] = {}
    places = [round(20 * log10(k.intensity_flop_per_byte or 1.0)) for k in kernels]
    for place, kernel in zip(places, kernels, strict=True):
        together.setdefault(place, []).append(kernel.kernel)
    return [", ".join(together.pop(place, [])) for place in places]


def _place(point: RooflinePoint) -> Point:
    return point.intensity_flop_per_byte, point.attainable_flop_per_s / TERA


def _batch(point: RooflinePoint) -> str:
    return f"batch {point.num_sequences:,}"


def _tokens(point: RooflinePoint) -> str:
    return f"{point.context_tokens:,}"


def _finding(results: Sequence[GpuRoofline]) -> str:
    if len(results) > 1:
        ridges = "; ".join(
            f"{shows.number(result.ridge_flop_per_byte)} on {result.hardware}" for result in results
        )
        return f"Above these FLOP/byte the arithmetic binds: {ridges}"
    (result,) = results
    decode = [point for point in result.points if point.phase == "decode"]
    ridge = f"the ridge is at {shows.number(result.ridge_flop_per_byte)} FLOP/byte"
    bound = {point.bound for point in decode}
    if bound == {"memory"}:
        best = max(decode, key=lambda point: point.peak_fraction)
        return (
            f"Decode is memory-bound: at most {shows.share(best.peak_fraction)} of the peak, "
            f"with {best.num_sequences:,} at once; {ridge}"
        )
    if bound == {"compute"}:
        return f"Decode is compute-bound at every batch shown; {ridge}"
    first = next((point for point in decode if point.bound == "compute"), None)
    at = f" from batch {first.num_sequences:,} on" if first else ""
    return f"Decode becomes compute-bound{at}; {ridge}"
