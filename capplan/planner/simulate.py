"""A plan under its traffic, step by step: replications, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from capplan.planner.engine_loop import open_engine
from capplan.planner.serving import Serving
from capplan.planner.simulated_bands import simulated_bands
from capplan.results.simulate import Curves, RequestRow, SimulateResult, Timeline
from capplan.simulator.curves import curves
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.metrics import measure
from capplan.simulator.requests import RequestRecord
from capplan.simulator.run_data import RunData, of_outcome
from capplan.simulator.step_statistics import StepStatistics
from capplan.simulator.timeline import (
    MAX_SLICES,
    TimelineStatistics,
    request_rows,
    timeline_of,
)
from capplan.simulator.traffic.traffic import Traffic
from capplan.simulator.yardstick import Limit, Yardstick, window_of

REPORT_EVERY = 256  # answers


@dataclass(frozen=True)
class SimulateQuestion:
    """``traffic`` makes the traffic of a seed; each replication has the next one."""

    serving: Serving
    traffic: Callable[[int], Traffic]
    stationary: bool
    fleet: FleetSettings
    limits: tuple[Limit, ...]
    percentiles: tuple[float, ...]
    goodput_fraction: float | None
    warmup_s: float | None
    seed: int
    num_replications: int

    @property
    def yardstick(self) -> Yardstick:
        serving = self.serving
        return Yardstick(
            limits=self.limits,
            percentiles=self.percentiles,
            goodput_fraction=self.goodput_fraction,
            warmup_s=self.warmup_s,
            stationary=self.stationary,
            num_gpus=serving.num_gpus,
            max_num_seqs=serving.config.slots,
            max_num_batched_tokens=serving.config.max_num_batched_tokens,
            usable_blocks=serving.config.usable_blocks,
        )


@dataclass(frozen=True)
class SimulateAnswer:
    result: SimulateResult
    runs: tuple[RunData, ...]
    yardstick: Yardstick

    def curves(self) -> Curves:
        """For plots, of the first replication."""
        return curves(self.runs[0], self.result, self.yardstick)

    def rows(self) -> list[RequestRow]:
        """Every request of every replication."""
        starts = [window_of(run, self.yardstick).start_s for run in self.runs]
        each = zip(self.runs, starts, strict=True)
        return [row for i, (run, at) in enumerate(each) for row in request_rows(run, i, at)]

    def timeline(self) -> Timeline:
        """The beginning of the first replication, where it was asked to be kept."""
        run = self.runs[0]
        return timeline_of(run, request_rows(run, 0, window_of(run, self.yardstick).start_s))


# Told how many requests have been answered, and of how many (None: nobody knows).
Progress = Callable[[int, int | None], object]


def simulate_plan(
    question: SimulateQuestion,
    progress: Progress = lambda _done, _of: None,
    *,
    keep_timeline: bool = False,
) -> SimulateAnswer:
    """Run every replication. Ctrl-C ends at once, with what is known so far."""
    runs: list[RunData] = []
    for seed in range(question.seed, question.seed + question.num_replications):
        traffic = question.traffic(seed)
        run = _run(question, traffic, seed, progress, keep_timeline and not runs)
        runs.append(run)
        if run.end == "interrupted":
            break
    result = measure(runs, question.yardstick)
    users = traffic.closed_loop
    num_users = users.num_users if users else None
    bands = simulated_bands(question.serving, result, num_users, runs, question.yardstick)
    return SimulateAnswer(replace(result, bands=bands), tuple(runs), question.yardstick)


def _run(
    question: SimulateQuestion,
    traffic: Traffic,
    seed: int,
    progress: Progress,
    keep_timeline: bool,
) -> RunData:
    serving = question.serving
    statistics: list[StepStatistics] = []
    num_answered = 0

    def make(on_finish: Callable[[RequestRecord], object]) -> ReplicaLoop:
        most = MAX_SLICES // serving.num_replicas
        watch = TimelineStatistics(most) if keep_timeline else StepStatistics()
        statistics.append(watch)

        def finished(record: RequestRecord) -> None:
            nonlocal num_answered
            num_answered += 1
            if num_answered % REPORT_EVERY == 0:
                progress(num_answered, traffic.num_requests)
            on_finish(record)

        return open_engine(serving, finished, watch)

    outcome = simulate_fleet(traffic, make, replace(question.fleet, seed=seed))
    front_end_s = serving.overheads.ttft_s
    return of_outcome(outcome, statistics, serving.num_replicas, front_end_s)
