"""GPUs against traffic: steps, the band of the model's error, and where today stands."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.plots.chart import Area, Dots, Line, Mark, Panel, Plot, Rule
from capplan.render.plots.ticks import linear
from capplan.results.gpus import GpusInputs, GpusResult
from capplan.results.sizing import Month
from capplan.results.traffic_curve import TrafficCurve, TrafficPoint


def traffic_plot(result: GpusResult, inputs: GpusInputs, curve: TrafficCurve | None) -> Plot | None:
    """None where no number of GPUs is enough, or only bounds were asked for."""
    if curve is None or result.num_gpus is None or result.sizing is None:
        return None
    months = result.sizing.months
    points = curve.points
    last = points[-1].arrival_rate_per_s
    most = max(point.num_gpus_high for point in points)
    return Plot(
        name="traffic",
        finding=_finding(result, inputs, curve),
        subject=f"{inputs.model_name} on {result.hardware}, a replica of "
        f"{shows.plural(curve.gpus_per_replica, 'GPU')} carries "
        f"{shows.rate(curve.requests_per_s_per_replica)}; without spares",
        panels=(
            Panel(
                x=linear("traffic (requests/s)", 0, last),
                y=linear("GPUs that carry it", 0, max(1.12 * most, most + 0.5), whole=True),
                marks=_marks(result, inputs, curve, months),
            ),
        ),
    )


def _marks(
    result: GpusResult, inputs: GpusInputs, curve: TrafficCurve, months: tuple[Month, ...]
) -> list[Mark]:
    xs = [point.arrival_rate_per_s for point in curve.points]
    covered = f"{curve.band.coverage_fraction * 100:g} % band of the model's error"
    today = inputs.arrival_rate_per_s
    marks: list[Mark] = [
        Area(
            xs,
            [point.num_gpus_low for point in curve.points],
            [point.num_gpus_high for point in curve.points],
            "sky",
            covered,
        ),
        Line([(p.arrival_rate_per_s, p.num_gpus) for p in curve.points], "blue", name="predicted"),
        Rule("x", today, "ink", "dotted", "today"),
    ]
    later = [month for month in months if month.month]
    if later:
        end = later[-1]  # more of them would stand in each other's way
        labels = [""] * (len(later) - 1) + [f"in {end.month} months: {end.num_gpus:,}"]
        places = [(month.arrival_rate_per_s, float(month.num_gpus)) for month in later]
        marks.append(Dots(places, "green", "square", "months to come", False, labels))
    at = [(today, float(result.num_gpus or 0))]
    label = f"today: {result.num_gpus:,}"
    marks.append(Dots(at, "red", "diamond", None, False, [label]))
    return marks


def _finding(result: GpusResult, inputs: GpusInputs, curve: TrafficCurve) -> str:
    rate = shows.rate(inputs.arrival_rate_per_s)
    point = _at(curve, inputs.arrival_rate_per_s)
    text = f"{rate} need {shows.plural(result.num_gpus or 0, 'GPU')}"
    if point.num_gpus_low != point.num_gpus_high:
        text += f", {point.num_gpus_low:,} to {point.num_gpus_high:,} by the model's error band"
    months = result.sizing.months if result.sizing else ()
    if len(months) > 1:
        end = months[-1]
        then = shows.rate(end.arrival_rate_per_s)
        return f"{text}; in {end.month} months {end.num_gpus:,} at {then}"
    end_point = curve.points[-1]
    then = shows.rate(end_point.arrival_rate_per_s)
    return f"{text}; {then} would need {end_point.num_gpus:,}"


def _at(curve: TrafficCurve, rate_per_s: float) -> TrafficPoint:
    """The point whose step the rate is on."""
    return next(point for point in curve.points if point.arrival_rate_per_s >= rate_per_s)
