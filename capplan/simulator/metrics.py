"""From runs to the answer: windows, service levels, rates, and what the engine did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from capplan.results.simulate import Latency, SimulateResult, Unanswered
from capplan.simulator.latencies import by_class, latencies
from capplan.simulator.replica_loads import together
from capplan.simulator.run_data import RunData
from capplan.simulator.saturation import saturation
from capplan.simulator.service_levels import goodput_of, level_of, verdict_of
from capplan.simulator.usage import bottleneck_of, output_tokens, prompt_tokens, usage_of
from capplan.simulator.yardstick import (
    NUM_SECTIONS,
    Yardstick,
    rate_of,
    sections_of,
    window_of,
)


def measure(runs: Sequence[RunData], yardstick: Yardstick) -> SimulateResult:
    """The result of one run, or of several replications together."""
    windows = [window_of(run, yardstick) for run in runs]
    sections = sections_of(windows)
    found = latencies(sections, _percentiles(yardstick))
    classes = by_class(sections, _percentiles(yardstick))
    # All replications are judged, the worst is shown.
    states = [saturation(w.run, window_s=w.loaded_s) for w in windows]
    state = max(states, key=lambda s: (s.saturated, s.offered_per_s - s.served_per_s))
    measured = [record for window in windows for record in window.records]
    # A trace is what it is, and so are its percentiles; a load that goes on for ever has none.
    endless = state.saturated and yardstick.stationary
    if endless:
        found = []
    num_failed = sum(window.num_failed for window in windows)
    levels = tuple(level_of(x, found, measured, num_failed, endless) for x in yardstick.limits)
    goodput = goodput_of(windows, yardstick, endless) if yardstick.limits else None
    usage = usage_of(windows, yardstick)
    end = _end(runs)
    verdict = verdict_of(end, endless, levels, goodput, measured)
    elapsed = sum(window.elapsed_s for window in windows)
    return SimulateResult(
        verdict=verdict,
        feasible=verdict == "meets",
        num_gpus=yardstick.num_gpus,
        num_requests=sum(len(run.arrivals) for run in runs),
        num_answered=sum(len(run.records) for run in runs),
        num_measured=len(measured),
        num_attempts=sum(run.num_attempts for run in runs),
        unanswered=_unanswered(runs),
        end=end,
        warmup_s=sum(window.start_s for window in windows) / len(windows),
        warmup_rule=_warmup_rule(yardstick),
        window_s=elapsed,
        interval=_interval(runs, found),
        service_levels=levels,
        goodput=goodput,
        latencies=tuple(found),
        classes=tuple(classes) if found else (),
        output_tokens_per_s=rate_of(output_tokens(windows), elapsed),
        prompt_tokens_per_s=rate_of(prompt_tokens(windows), elapsed),
        requests_per_s=rate_of(
            sum(1 for w in windows for r in w.run.records if w.start_s <= r.finish_s <= w.end_s),
            elapsed,
        ),
        saturation=state,
        drain_s=max(run.end_s - run.last_arrival_s for run in runs),
        usage=usage,
        replicas=together([run.loads for run in runs]),
        bottleneck=bottleneck_of(usage, yardstick),
    )


def _percentiles(yardstick: Yardstick) -> tuple[float, ...]:
    asked = {limit.percentile for limit in yardstick.limits}
    return tuple(sorted({*yardstick.percentiles, *asked}))


def _warmup_rule(yardstick: Yardstick) -> str:
    if yardstick.warmup_s is not None:
        return "as given"
    return "MSER-5 on end-to-end times" if yardstick.stationary else "none: every request counts"


def _interval(runs: Sequence[RunData], found: Sequence[Latency]) -> str | None:
    if not any(p.low_s is not None for latency in found for p in latency.percentiles):
        return None
    if len(runs) > 1:
        return f"{len(runs)} replications"
    return f"{NUM_SECTIONS} sections of the run"


def _unanswered(runs: Sequence[RunData]) -> tuple[Unanswered, ...]:
    """By how they ended; what the engine refused, by its reasons."""
    ends: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for run in runs:
        ends += run.failures
        reasons += run.refusals
    found: list[Unanswered] = []
    for end, count in sorted(ends.items(), key=lambda item: (-item[1], item[0])):
        if end != "refused":
            found.append(Unanswered(end, count, None))
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        found.append(Unanswered("refused", count, reason))
    return tuple(found)


def _end(runs: Sequence[RunData]) -> str:
    ends = [run.end for run in runs]
    bad = next((end for end in ends if end != "finished"), "finished")
    return "interrupted" if "interrupted" in ends else bad
