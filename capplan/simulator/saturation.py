"""Does more come in than goes out? Then a queue has no steady state, and no percentiles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from capplan.results.simulate import Saturation
from capplan.simulator.run_data import RunData
from capplan.simulator.yardstick import rate_of

NUM_SLICES = 10
_SAMPLES_PER_SLICE = 20
# Mann-Kendall over ten slices: S above this has a chance of 1 % without a trend (var S = 125).
_LEAST_TREND = 27
LEAST_GROWTH_FRACTION = 0.05
RULE = (
    "over the second half of the arrivals, in ten slices: those who wait, or all who are present, "
    "become more (Mann-Kendall at 1 %), by more than 5 % of those who arrive and by more than "
    "chance (3 standard deviations of a Poisson count)"
)


def saturation(run: RunData, *, window_s: tuple[float, float]) -> Saturation:
    """The test on one run; rates over the window.

    Where nobody has left by its end, what is served is a matter of the whole run.
    """
    start_s, end_s = window_s
    last_s = run.last_arrival_s
    half_s = last_s / 2
    too_short = _too_short(run, half_s)
    # More running requests may only mean that a short run has not filled up yet; a queue is one.
    saturated = _rises(run, run.waiting, half_s) or (
        not too_short and _rises(run, run.present, half_s)
    )
    elapsed = end_s - start_s
    offered = sum(1 for at in run.arrivals if start_s <= at <= end_s)
    served = sum(1 for at in run.ends if start_s <= at <= end_s)
    return Saturation(
        saturated=saturated,
        offered_per_s=rate_of(offered, elapsed),
        served_per_s=rate_of(served, elapsed) or rate_of(len(run.ends), run.end_s),
        num_present_half=run.present(half_s),
        num_present_end=run.present(last_s),
        rule=RULE,
        too_short=too_short,
    )


def _rises(run: RunData, count: Callable[[float], int], half_s: float) -> bool:
    """Whether a number of requests grows from the half of the arrivals to their end."""
    slice_s = (run.last_arrival_s - half_s) / NUM_SLICES
    places = [(i + 0.5) / _SAMPLES_PER_SLICE for i in range(_SAMPLES_PER_SLICE)]
    means = [
        sum(count(half_s + (i + place) * slice_s) for place in places) / _SAMPLES_PER_SLICE
        for i in range(NUM_SLICES)
    ]
    trend = sum(
        (later > sooner) - (later < sooner)
        for i, sooner in enumerate(means)
        for later in means[i + 1 :]
    )
    # From the middle of the first slice to the middle of the last.
    between = (NUM_SLICES - 1) / NUM_SLICES
    num_arrived = between * (len(run.arrivals) - bisect_right(run.arrivals, half_s))
    growth = means[-1] - means[0]
    enough = growth > max(LEAST_GROWTH_FRACTION * num_arrived, 3 * num_arrived**0.5)
    return trend >= _LEAST_TREND and enough


def _too_short(run: RunData, half_s: float) -> bool:
    """Half of the arrivals take less than twice the time of a quick request: nothing settles."""
    if not run.records:
        return True
    quick = sorted(record.e2e_s for record in run.records)[len(run.records) // 10]
    return half_s < 2 * quick
