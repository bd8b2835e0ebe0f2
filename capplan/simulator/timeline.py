"""The beginning of a run in detail, for `--timeline`: bounded, whatever the length of the run."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from capplan.results.simulate import LoadSample, RequestRow, StepSlice, Timeline
from capplan.simulator.run_data import RunData
from capplan.simulator.step_statistics import StepStatistics

MAX_SLICES = 20_000  # over all replicas
MAX_REQUESTS = 5_000


class TimelineStatistics(StepStatistics):
    """Statistics that also keep the first steps one by one."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.slices: list[StepSlice] = []
        self.samples: list[LoadSample] = []
        self.full_s = inf  # from here on nothing more is kept
        self._most = most

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        super().step(start_s, step_s, num_decodes, prefill_tokens)
        self._keep(StepSlice(start_s, step_s, 1, num_decodes, prefill_tokens))

    def stretch(
        self,
        start_s: float,
        num_steps: int,
        num_decodes: int,
        context_tokens: int,
        base_s: float,
        slope_s: float,
    ) -> None:
        super().stretch(start_s, num_steps, num_decodes, context_tokens, base_s, slope_s)
        first_s, more_s = base_s + slope_s * context_tokens, slope_s * num_decodes
        taken_s = num_steps * first_s + more_s * (num_steps * (num_steps - 1) // 2)
        self._keep(StepSlice(start_s, taken_s, num_steps, num_decodes, 0))

    def load(self, time_s: float, num_running: int, num_waiting: int, num_used_blocks: int) -> None:
        super().load(time_s, num_running, num_waiting, num_used_blocks)
        if time_s < self.full_s:
            self.samples.append(LoadSample(time_s, num_running, num_waiting, num_used_blocks))

    def _keep(self, piece: StepSlice) -> None:
        if len(self.slices) < self._most:
            self.slices.append(piece)
        elif self.full_s == inf:
            self.full_s = piece.start_s


def timeline_of(run: RunData, rows: Sequence[RequestRow]) -> Timeline:
    """What was kept; requests that arrived while all replicas were watched, the first ones."""
    watches = [watch for watch in run.statistics if isinstance(watch, TimelineStatistics)]
    until_s = min([watch.full_s for watch in watches], default=inf)
    kept = [row for row in rows if row.arrival_s < until_s]
    if len(kept) > MAX_REQUESTS:
        until_s = min(until_s, kept[MAX_REQUESTS].arrival_s)
        kept = kept[:MAX_REQUESTS]
    is_whole = until_s == inf
    return Timeline(
        steps=tuple(tuple(s for s in w.slices if s.start_s < until_s) for w in watches),
        loads=tuple(tuple(s for s in w.samples if s.time_s < until_s) for w in watches),
        requests=tuple(kept),
        until_s=run.end_s if is_whole else until_s,
        is_whole=is_whole,
    )


def request_rows(run: RunData, replication: int, measured_from_s: float) -> list[RequestRow]:
    """Every request of a run in order of arrival."""
    rows = [
        RequestRow(
            replication=replication,
            id=record.id,
            replica=run.replica_of.get(record.id.partition("#")[0], 0),
            end="ok",
            arrival_s=record.arrival_s,
            first_scheduled_s=record.first_scheduled_s,
            first_token_s=record.first_token_s,
            finish_s=record.finish_s,
            prompt_tokens=record.prompt_tokens,
            output_tokens=record.output_tokens,
            cached_tokens=record.cached_tokens,
            num_preemptions=record.num_preemptions,
            queue_s=record.first_scheduled_s - record.arrival_s,
            ttft_s=record.ttft_s,
            tpot_s=record.tpot_s,
            e2e_s=record.e2e_s,
            measured=record.arrival_s >= measured_from_s,
        )
        for record in run.records
    ]
    rows += [
        RequestRow(
            replication, client.id, client.replica, str(client.end), client.sent_s, None, None,
            client.end_s, client.prompt_tokens, client.output_tokens, None, None, None, None, None,
            None, client.sent_s >= measured_from_s,
        )
        for client in run.unanswered
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row.arrival_s, row.id))
