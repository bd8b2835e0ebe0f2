"""A long prompt among answers under way: each step of it, whole and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

from capplan.planner.compare_schedulers import (
    CONTENDERS,
    Contender,
    SchedulersQuestion,
    budget_of,
    loop_config,
)
from capplan.results.schedules import Lane, Schedule, SchedulesResult, Span
from capplan.simulator.fleet.simulate import simulate_fleet
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.policies.loop import PolicyReplica
from capplan.simulator.policies.step_log import LoggedReplica, LoggedStep, StepLog
from capplan.simulator.requests import RequestRecord

WHOLE, CHUNKED = "prefill-first", "chunked"
NUM_ANSWERS = 4
MARGIN = 0.25  # of the window, before and after


def schedules(question: SchedulersQuestion) -> SchedulesResult | None:
    """The same traffic under vLLM V0's rule and in chunks, around the longest prompt.

    Of several such prompts, that which was begun while most answers were under way. None where no
    prompt was begun while somebody was answered, or where the run was interrupted.
    """
    contenders = [c for key in (WHOLE, CHUNKED) for c in CONTENDERS if c.key == key]
    runs = [_run(question, contender, None) for contender in contenders]
    found = _long_prompt(runs[0])
    if found is None:
        return None
    prompts = [next((r for r in run if r.id == found.id), None) for run in runs]
    longs = [record for record in prompts if record is not None]
    if len(longs) < len(runs):
        return None
    begin_s = min(record.first_scheduled_s for record in longs)
    end_s = max(record.first_token_s for record in longs)
    margin_s = MARGIN * (end_s - begin_s)
    window = max(0.0, begin_s - margin_s), end_s + margin_s
    server_s = question.front_end_s(found.prompt_tokens)
    ids = _answers(runs, found.id, window)
    made = []
    for contender, run, record in zip(contenders, runs, longs, strict=True):
        log = StepLog(*window)
        _run(question, contender, log)
        by_id = {each.id: each for each in run}
        lanes = [_lane(by_id[name], log.steps, window) for name in (found.id, *ids)]
        made.append(
            Schedule(
                key=contender.key,
                name=contender.name,
                max_num_batched_tokens=budget_of(question.config, contender),
                lanes=tuple(lanes),
                longest_gap_s=max(filter(None, map(_gap, lanes[1:])), default=None),
                ttft_s=record.ttft_s + server_s,
            )
        )
    return SchedulesResult(
        found.prompt_tokens, found.arrival_s, _num_answered(runs[0], found), server_s, *window,
        tuple(made),
    )  # fmt: skip


def _run(
    question: SchedulersQuestion, contender: Contender, log: StepLog | None
) -> list[RequestRecord]:
    records: list[RequestRecord] = []
    config = loop_config(question.config, contender)

    def make(on_finish: Callable[[RequestRecord], object]) -> ReplicaLoop:
        def finished(record: RequestRecord) -> None:
            records.append(record)
            on_finish(record)

        policy = contender.make(question.config)
        if log is None:
            return PolicyReplica(config, policy, question.step_time, finished)
        replica = LoggedReplica(config, policy, question.step_time, finished, watch=log)
        replica.log = log
        return replica

    simulate_fleet(question.traffic(), make, question.fleet)
    return records


def _long_prompt(records: Sequence[RequestRecord]) -> RequestRecord | None:
    longest = max((record.prompt_tokens for record in records), default=0)
    long = [record for record in records if record.prompt_tokens == longest]
    best = max(long, key=lambda r: (_num_answered(records, r), -r.arrival_s), default=None)
    return best if best is not None and _num_answered(records, best) else None


def _num_answered(records: Sequence[RequestRecord], long: RequestRecord) -> int:
    """Requests between their first token and their last when the prompt was begun."""
    return sum(
        record.first_token_s <= long.first_scheduled_s < record.finish_s
        for record in records
        if record.id != long.id
    )


def _answers(
    runs: Sequence[Sequence[RequestRecord]], long_id: str, window: tuple[float, float]
) -> list[str]:
    """Those that are answered for most of the window under every scheduler, and never evicted."""
    shares: dict[str, float] = {}
    for run in runs:
        for record in run:
            together = min(record.finish_s, window[1]) - max(record.first_token_s, window[0])
            if record.num_preemptions or record.id == long_id or together <= 0:
                together = -inf
            shares[record.id] = min(shares.get(record.id, inf), together)
    able = [name for name, share in shares.items() if share > 0]
    able = [name for name in able if all(any(r.id == name for r in run) for run in runs)]
    return sorted(able, key=lambda name: -shares[name])[:NUM_ANSWERS]


def _lane(record: RequestRecord, steps: Sequence[LoggedStep], window: tuple[float, float]) -> Lane:
    spans = []
    if record.arrival_s < record.first_scheduled_s and record.first_scheduled_s > window[0]:
        start_s = max(record.arrival_s, window[0])
        spans.append(Span(start_s, min(record.first_scheduled_s, window[1]), "waiting", 0))
    for step in steps:
        # By the middle: ends are sums whose last digits depend on the order of adding.
        middle_s = (step.start_s + step.end_s) / 2
        inside = record.first_scheduled_s <= middle_s <= record.finish_s
        got = step.chunks.get(record.id, 0)
        if got:
            spans.append(Span(step.start_s, step.end_s, "prefill", got))
        elif inside and middle_s >= record.first_token_s and step.num_decodes:
            spans.append(Span(step.start_s, step.end_s, "decode", 1))
        elif inside:
            spans.append(Span(step.start_s, step.end_s, "stalled", 0))
    return Lane(record.id, record.prompt_tokens, tuple(spans))


def _gap(lane: Lane) -> float | None:
    """The longest between two tokens; each comes with the end of its step."""
    ends = [span.end_s for span in lane.spans if span.kind == "decode"]
    return max((b - a for a, b in pairwise(ends)), default=None)
