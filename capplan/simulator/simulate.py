"""The front door: requests in, an outcome with records out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.step_time import ContextTime, HostTime, StepTime
from capplan.simulator.watch import Watch


def simulate(
    requests: Iterable[Request],
    config: SchedulerConfig,
    step_time: StepTime | ContextTime,
    *,
    cpu_s_per_step: float = 0.0,
    on_finish: Callable[[RequestRecord], object] | None = None,
    reject_impossible: bool = True,
    watch: Watch | None = None,
) -> Outcome:
    """Simulate one replica until every request has left.

    Requests come in order of arrival; they may be a stream, as they are looked at one ahead.
    Records are collected in the outcome, in order of finish, unless `on_finish` takes them.
    `cpu_s_per_step` is the engine's CPU time of a step: added to synchronous steps, hidden behind
    the GPU in asynchronous ones. `watch` is told what ran, for statistics.
    """
    records: list[RequestRecord] = []
    sink = records.append if on_finish is None else on_finish
    outcome: Outcome
    if isinstance(step_time, ContextTime) or not config.is_plain:
        detailed = DetailedReplica(
            config, step_time, sink, cpu_s=cpu_s_per_step, reject=reject_impossible, watch=watch
        )
        outcome = detailed.run(requests)
    else:
        if cpu_s_per_step:
            step_time = HostTime(step_time, cpu_s_per_step, asynchronous=config.async_scheduling)
        replica = Replica(config, step_time, sink, reject=reject_impossible, watch=watch)
        outcome = replica.run(requests)
    return replace(outcome, records=tuple(records))
