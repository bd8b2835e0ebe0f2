"""From runs to the answer: windows, service levels, rates, and what the engine did."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from capplan.formulas.statistics import percentile_of, percentile_rank, samples_needed
from capplan.results.simulate import (
    Goodput,
    Latency,
    ServiceLevel,
    SimulateResult,
    Unanswered,
    Usage,
)
from capplan.simulator.latencies import (
    NAMES,
    VALUES,
    Section,
    by_class,
    enough,
    latencies,
    values_of,
)
from capplan.simulator.replica_loads import together
from capplan.simulator.requests import RequestRecord
from capplan.simulator.run_data import RunData
from capplan.simulator.saturation import saturation
from capplan.simulator.step_statistics import Totals

NUM_SECTIONS = 10
_KV_FULL = 0.95  # of the blocks, at the fullest moment


@dataclass(frozen=True, slots=True)
class Limit:
    key: str  # ttft | tpot | itl | e2e
    limit_s: float
    percentile: float


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a run is measured against.

    ``stationary`` traffic goes on as it began: the start is cut until it has settled, and rates
    are those up to the last arrival. Otherwise (a trace, a burst) every request counts, and rates
    are over the whole run.
    """

    limits: tuple[Limit, ...]
    percentiles: tuple[float, ...]
    goodput_fraction: float | None
    warmup_s: float | None  # None: found by MSER where the traffic is stationary
    stationary: bool
    num_gpus: int
    max_num_seqs: int
    max_num_batched_tokens: int
    usable_blocks: int


@dataclass(frozen=True)
class Window:
    """One run and the part of it that counts."""

    run: RunData
    start_s: float
    end_s: float

    @property
    def elapsed_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def loaded_s(self) -> tuple[float, float]:
        """Up to the last arrival: what comes after only drains."""
        last_s = self.run.last_arrival_s
        return (self.start_s, last_s) if last_s > self.start_s else (self.start_s, self.end_s)

    @property
    def records(self) -> list[RequestRecord]:
        return [r for r in self.run.records if r.arrival_s >= self.start_s]

    @property
    def num_failed(self) -> int:
        return len(self.run.failed_at) - bisect_left(self.run.failed_at, self.start_s)

    def totals(self) -> Totals:
        """Over all replicas."""
        parts = [s.window(self.start_s, self.end_s) for s in self.run.statistics]
        return Totals(
            self.elapsed_s, *(sum(column) for column in list(zip(*parts, strict=True))[1:])
        )

    def section(self, start_s: float, end_s: float, records: Sequence[RequestRecord]) -> Section:
        parts = [s.gap_sample.within(start_s, end_s) for s in self.run.statistics]
        gaps = parts[0]
        for part in parts[1:]:
            gaps.extend(part)
        return Section(records, gaps)


def measure(runs: Sequence[RunData], yardstick: Yardstick) -> SimulateResult:
    """The result of one run, or of several replications together."""
    windows = [window_of(run, yardstick) for run in runs]
    sections = _sections(windows)
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
    levels = tuple(_level(x, found, measured, num_failed, endless) for x in yardstick.limits)
    goodput = _goodput(windows, yardstick, endless) if yardstick.limits else None
    usage = _usage(windows, yardstick)
    end = _end(runs)
    verdict = _verdict(end, endless, levels, goodput, measured)
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
        output_tokens_per_s=_rate(_output_tokens(windows), elapsed),
        prompt_tokens_per_s=_rate(_prompt_tokens(windows), elapsed),
        requests_per_s=_rate(
            sum(1 for w in windows for r in w.run.records if w.start_s <= r.finish_s <= w.end_s),
            elapsed,
        ),
        saturation=state,
        drain_s=max(run.end_s - run.last_arrival_s for run in runs),
        usage=usage,
        replicas=together([run.loads for run in runs]),
        bottleneck=_bottleneck(usage, yardstick),
    )


def _rate(amount: float, elapsed_s: float) -> float:
    return amount / elapsed_s if elapsed_s > 0 else 0.0


def _percentiles(yardstick: Yardstick) -> tuple[float, ...]:
    asked = {limit.percentile for limit in yardstick.limits}
    return tuple(sorted({*yardstick.percentiles, *asked}))


def window_of(run: RunData, yardstick: Yardstick) -> Window:
    """The part of a run that counts."""
    if not yardstick.stationary:
        return Window(run, max(yardstick.warmup_s or 0.0, run.measured_from_s), run.end_s)
    start_s = run.settled_s if yardstick.warmup_s is None else yardstick.warmup_s
    start_s = max(start_s, run.measured_from_s)
    end_s = run.last_arrival_s
    # Requests that all come at once have no steady state: the whole run counts.
    return Window(run, start_s, end_s) if end_s > start_s else Window(run, 0.0, run.end_s)


def _warmup_rule(yardstick: Yardstick) -> str:
    if yardstick.warmup_s is not None:
        return "as given"
    return "MSER-5 on end-to-end times" if yardstick.stationary else "none: every request counts"


def _sections(windows: Sequence[Window]) -> list[Section]:
    """Replications, or ten stretches of one run with as many requests each."""
    if len(windows) > 1:
        return [w.section(w.start_s, w.run.end_s, w.records) for w in windows]
    (window,) = windows
    records = window.records
    if len(records) < 2 * NUM_SECTIONS:
        return [window.section(window.start_s, window.run.end_s, records)]
    cuts = [i * len(records) // NUM_SECTIONS for i in range(NUM_SECTIONS + 1)]
    found = []
    for i in range(NUM_SECTIONS):
        part = records[cuts[i] : cuts[i + 1]]
        last = i == NUM_SECTIONS - 1
        # Half-open: a gap belongs to one section.
        end_s = window.run.end_s if last else math.nextafter(records[cuts[i + 1]].arrival_s, 0.0)
        start_s = part[0].arrival_s if i else window.start_s
        found.append(window.section(start_s, end_s, part))
    return found


def _interval(runs: Sequence[RunData], found: Sequence[Latency]) -> str | None:
    if not any(p.low_s is not None for latency in found for p in latency.percentiles):
        return None
    if len(runs) > 1:
        return f"{len(runs)} replications"
    return f"{NUM_SECTIONS} sections of the run"


def _level(
    limit: Limit,
    found: Sequence[Latency],
    measured: Sequence[RequestRecord],
    num_failed: int,
    endless: bool,
) -> ServiceLevel:
    name, percentile = NAMES[limit.key], limit.percentile
    if endless:
        return ServiceLevel(
            limit.key, name, percentile, limit.limit_s, None, None, False, "saturated"
        )
    latency = next(latency for latency in found if latency.key == limit.key)
    value: float | None = next(p.value_s for p in latency.percentiles if p.percentile == percentile)
    over, count = None, latency.num_samples
    if limit.key != "itl":
        values = values_of(limit.key, measured)
        above = len(values) - bisect_right(values, limit.limit_s)
        # Nobody waits for a TPOT that never began; but an answer that never came is late.
        count += num_failed
        over = (above + num_failed) / count if count else None
        if num_failed:
            place = percentile_rank(count, percentile)[1] if count else 0
            value = (
                percentile_of([*values, *[math.inf] * num_failed], percentile)
                if (place < len(values))
                else None
            )
    met, why = _judged(value, over, count, limit)
    return ServiceLevel(limit.key, name, percentile, limit.limit_s, value, over, met, why)


def _judged(
    value: float | None, over: float | None, count: int, limit: Limit
) -> tuple[bool | None, str | None]:
    """Met or not. With too few requests a miss can still be plain: too many are above."""
    allowed = 1 - limit.percentile / 100
    if enough(count, limit.percentile):
        if value is None:
            return False, f"{over or 0:.1%} are above it or without an answer"
        return value <= limit.limit_s, None
    why = f"needs {samples_needed(limit.percentile):,} requests, has {count:,}"
    if over is not None and over * count > 3 * max(1.0, count * allowed):
        return False, why
    return None, why


def _goodput(windows: Sequence[Window], yardstick: Yardstick, endless: bool) -> Goodput:
    limits = [(VALUES[x.key], x.limit_s) for x in yardstick.limits if x.key != "itl"]
    good = total = 0
    for window in windows:
        for record in window.records:
            values = [(value_of(record), limit_s) for value_of, limit_s in limits]
            good += all(value is None or value <= limit_s for value, limit_s in values)
        total += sum(1 for at in window.run.arrivals if at >= window.start_s)
    elapsed = sum(window.elapsed_s for window in windows)
    share = good / total if total else 0.0
    target = yardstick.goodput_fraction
    met = None if target is None else share >= target and not endless
    return Goodput(_rate(good, elapsed), share, target, met)


def _output_tokens(windows: Sequence[Window]) -> float:
    """Decoded within the window, and the first tokens that prefill samples."""
    tokens = 0.0
    for window in windows:
        tokens += window.totals().num_decodes
        start_s, end_s = window.start_s, window.end_s
        tokens += sum(1 for r in window.run.records if start_s <= r.first_token_s <= end_s)
    return tokens


def _prompt_tokens(windows: Sequence[Window]) -> float:
    """Prompts whose first token came within the window, cached parts included."""
    return sum(
        record.prompt_tokens
        for window in windows
        for record in window.run.records
        if window.start_s <= record.first_token_s <= window.end_s
    )


def _usage(windows: Sequence[Window], yardstick: Yardstick) -> Usage:
    parts = [window.totals() for window in windows]
    total = Totals(*(sum(column) for column in zip(*parts, strict=True)))
    watches = [watch for window in windows for watch in window.run.statistics]
    replica_s = sum(w.elapsed_s * w.run.num_replicas for w in windows)
    records = [record for window in windows for record in window.run.records]
    steps, blocks = total.num_steps, yardstick.usable_blocks
    wasted = sum(window.run.wasted_tokens for window in windows)
    scheduled = sum(window.run.scheduled_tokens for window in windows)
    prompts = sum(record.prompt_tokens for record in records)
    tokens = total.num_decodes + total.prefill_tokens
    return Usage(
        num_steps=round(steps),
        mean_step_s=total.busy_s / steps if steps else None,
        mean_batch=total.num_decodes / steps if steps else None,
        mean_step_tokens=tokens / steps if steps else None,
        budget_fraction=tokens / steps / yardstick.max_num_batched_tokens if steps else None,
        max_running=max(watch.max_running for watch in watches),
        max_waiting=max(watch.max_waiting for watch in watches),
        kv_used_fraction=total.block_s / replica_s / blocks if replica_s and blocks else None,
        kv_used_fraction_max=max(w.max_used_blocks for w in watches) / blocks if blocks else 0.0,
        busy_fraction=min(1.0, _rate(total.busy_s, replica_s)),
        num_preemptions=sum(record.num_preemptions for record in records),
        wasted_tokens=wasted,
        wasted_fraction=wasted / scheduled if scheduled else 0.0,
        prefix_hit_fraction=sum(r.cached_tokens for r in records) / prompts if prompts else None,
    )


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


def _verdict(
    end: str,
    endless: bool,
    levels: Sequence[ServiceLevel],
    goodput: Goodput | None,
    measured: Sequence[RequestRecord],
) -> str:
    if not measured:
        return "interrupted" if end == "interrupted" else "no-requests"
    verdicts = [level.met for level in levels]
    if goodput is not None and goodput.target_fraction is not None:
        verdicts.append(goodput.met)
    if end == "interrupted":
        return "interrupted"
    if endless:
        return "saturated"
    if end != "finished" or any(met is False for met in verdicts):
        return "misses"
    return "undecided" if any(met is None for met in verdicts) else "meets"


def _bottleneck(usage: Usage, yardstick: Yardstick) -> str | None:
    """What requests waited for, where some had to wait for more than the next step."""
    if usage.max_running >= yardstick.max_num_seqs:
        return "seats"
    return "kv" if usage.kv_used_fraction_max >= _KV_FULL and usage.num_preemptions else None
