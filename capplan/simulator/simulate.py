"""The front door: requests in, an outcome with records out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.step_time import HostTime, StepTime
from capplan.simulator.watch import Watch

if TYPE_CHECKING:
    from capplan.simulator.detailed_clock import DetailedReplica


def simulate(
    requests: Iterable[Request],
    config: SchedulerConfig,
    step_time: StepTime,
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
    replica = open_replica(
        config,
        step_time,
        records.append if on_finish is None else on_finish,
        cpu_s_per_step=cpu_s_per_step,
        reject_impossible=reject_impossible,
        watch=watch,
    )
    return replace(replica.run(requests), records=tuple(records))


def open_replica(
    config: SchedulerConfig,
    step_time: StepTime,
    on_finish: Callable[[RequestRecord], object],
    *,
    cpu_s_per_step: float = 0.0,
    reject_impossible: bool = True,
    watch: Watch | None = None,
) -> Replica | DetailedReplica:
    """One replica that others drive through the doors of `loop.ReplicaLoop`.

    By the counters where they cover the configuration, else request by request.
    """
    if not config.is_plain:
        from capplan.simulator.detailed_clock import DetailedReplica

        return DetailedReplica(
            config,
            step_time,
            on_finish,
            cpu_s=cpu_s_per_step,
            reject=reject_impossible,
            watch=watch,
        )
    if cpu_s_per_step:
        step_time = HostTime(step_time, cpu_s_per_step, asynchronous=config.async_scheduling)
    return Replica(config, step_time, on_finish, reject=reject_impossible, watch=watch)
