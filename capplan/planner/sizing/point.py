"""One simulated point: a group of replicas of one kind at one rate, which may go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

from capplan.planner.engine_loop import open_engine
from capplan.planner.serving import Serving
from capplan.planner.sizing.sample import Sample, gaps_of
from capplan.simulator.fleet.patient import PatientFleet
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Request, RequestRecord
from capplan.simulator.run_data import RunData
from capplan.simulator.saturation import saturation
from capplan.simulator.step_statistics import StepStatistics
from capplan.simulator.traffic.traffic import Traffic

_AT_A_TIME = 64  # requests, before it is looked whether the first ones have ended


class Point:
    """The first requests of a run are looked at while others come after them, as they would.

    ``traffic`` makes so many requests; ``most``: there may be need of so many; ``with_gaps``
    between tokens too. Where requests
    follow from answers, every look is a run of its own.
    """

    def __init__(
        self,
        serving: Serving,
        traffic: Callable[[int], Traffic],
        fleet: FleetSettings,
        kind_of: Callable[[str], int],
        most: int,
        *,
        with_gaps: bool = False,
    ) -> None:
        self._watches: list[StepStatistics] | None = [] if with_gaps else None
        self._serving, self._fleet, self._kind_of = serving, fleet, kind_of
        self._traffic = traffic
        whole = traffic(most)
        self._going = None if whole.has_follow_ups else PatientFleet(self._make, fleet)
        self._coming = iter(()) if whole.has_follow_ups else whole.requests()
        self._sent: list[Request] = []
        self._ended = False  # nobody comes any more, and all have left

    def _make(self, on_finish: Callable[[RequestRecord], object]) -> ReplicaLoop:
        if self._watches is None:
            return open_engine(self._serving, on_finish)
        self._watches.append(StepStatistics())
        return open_engine(self._serving, on_finish, self._watches[-1])

    def sample(self, warmup: int, total: int) -> Sample:
        """Of the first ``total`` requests, but for the ``warmup`` before those that count."""
        if self._going is None:
            if self._watches:
                self._watches.clear()
            outcome = simulate_fleet(self._traffic(total), self._make, self._fleet)
            clients = sorted(outcome.clients, key=lambda client: client.sent_s)
            sent = [(client.id, client.sent_s) for client in clients]
            return self._sample_of(sent, outcome.records, warmup)
        self._go_on(self._going, total)
        sent = [(request.id, request.arrival_s) for request in self._sent[:total]]
        return self._sample_of(sent, self._going.records(), warmup)

    def _go_on(self, fleet: PatientFleet, total: int) -> None:
        """Until the first so many have ended."""
        self._send(fleet, total - len(self._sent))
        open_still = {request.id for request in self._sent[:total]}
        while not self._ended:
            open_still.difference_update(record.id for record in fleet.records())
            open_still.difference_update(fleet.refused)
            if not open_still:
                return
            if not self._send(fleet, _AT_A_TIME):
                self._ended = True
                fleet.finish()

    def _send(self, fleet: PatientFleet, number: int) -> bool:
        """False where nobody comes any more."""
        coming = list(islice(self._coming, max(0, number)))
        fleet.send(coming)
        self._sent += coming
        return bool(coming)

    def _sample_of(
        self, sent: list[tuple[str, float]], records: Iterable[RequestRecord], warmup: int
    ) -> Sample:
        """``sent``: names and times in order of arrival."""
        later_s, kind_of = self._serving.overheads.ttft_s, self._kind_of
        by_id = {record.id: record for record in records}
        rows: list[tuple[float, float | None, float, int]] = []
        answered: list[RequestRecord] = []
        refused: list[float] = []
        for number, (name, sent_s) in enumerate(sent):
            record = by_id.get(name)
            kind = kind_of(name)
            if record is None:
                refused.append(sent_s)
                row: tuple[float, float | None, float, int] = (math.inf, None, math.inf, kind)
            else:
                answered.append(record)
                seen_s = later_s(record.prompt_tokens)
                row = (record.ttft_s + seen_s, record.tpot_s, record.e2e_s + seen_s, kind)
            if number >= warmup:
                rows.append(row)
        run = RunData(
            records=answered,
            arrivals=[sent_s for _, sent_s in sent],
            ends=sorted([*(record.finish_s for record in answered), *refused]),
            statistics=(),
            num_replicas=self._fleet.num_replicas,
            end="finished",
            ends_unanswered=refused,
        )
        state = saturation(run, window_s=(0.0, run.last_arrival_s))
        samples = (watch.gap_sample for watch in self._watches or ())
        gaps = gaps_of(samples, sent[warmup][1], sent[-1][1]) if self._watches else ()
        return Sample.of(rows, saturated=state.saturated, gaps=gaps)
