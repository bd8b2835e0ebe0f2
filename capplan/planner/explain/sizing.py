"""`capplan explain gpus` where the answer was simulated: the search, the fleet and its proof."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain.bands import count_band_figures, value_band_figures
from capplan.planner.explain.fleet import fleet_figures
from capplan.planner.explain.gpus import LARGEST_BATCHES, bound_figures
from capplan.planner.explain.money import cost_figures, power_figures
from capplan.planner.explain.proof import proof_figures
from capplan.planner.explain.sustained import sustained_figures
from capplan.planner.gpus import plan as bounds_of
from capplan.planner.replica import Replica
from capplan.planner.sizing.robustness import model_band
from capplan.planner.sizing.search import Search, Sized
from capplan.results.explanation import Explanation, Figure
from capplan.results.gpus import GpusResult

_SIMULATED = (
    "percentiles of the simulation: read off its requests in the order of their size",
    "their 95 % intervals: from ten stretches of the run (sectioning; docs/simulator.md)",
    "step times: the step model, docs/model.md; that of one step is shown in its parts",
)


def explain_sized(result: GpusResult, best: Sized, aims: Search) -> Explanation:
    """The bounds that frame the search, then how the simulation found and proved the count."""
    candidate = best.candidate
    question = candidate.question
    # Beside the answer stand the bounds of the same degree.
    replica = Replica(question, candidate.serving.deployment.tp)
    figures = list(bound_figures(replica, bounds_of(question)))
    figures += sustained_figures(candidate, aims, result)
    figures += fleet_figures(result, candidate.gpus_per_replica)
    figures += proof_figures(candidate, aims, result)
    figures += _bands(best, aims, result)
    if result.cost:
        figures += cost_figures(result.cost, candidate.replica.question.workload)
    if result.power:
        figures += power_figures(result.power, question.workload)
    left_out = [LARGEST_BATCHES, *_SIMULATED]
    if question.fleet.availability is not None:
        left_out.append("spares: the fewest with which k of n are up often enough, docs/planner.md")
    headline = f"{result.num_gpus} x {result.hardware} for {question.model.name}"
    return Explanation("gpus", headline, tuple(figures), tuple(left_out))


def _bands(best: Sized, aims: Search, result: GpusResult) -> Iterator[Figure]:
    candidate = best.candidate
    assert result.num_replicas is not None
    assert result.sustained is not None
    counted = next(band for band in result.bands if band.figure == "num_gpus")
    rate = aims.demand.peak_per_s
    yield from count_band_figures(
        counted,
        model_band(best),
        rate,
        max(rate / result.num_replicas, result.sustained.requests_per_s),
        candidate.gpus_per_replica,
    )
    yield from value_band_figures(result.bands)
