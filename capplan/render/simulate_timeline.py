"""A run in the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome open.

Each replica is a process: its steps are slices, its load counters, its requests asynchronous
slices with their phases inside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.render.new_file import writing
from capplan.results.simulate import LoadSample, RequestRow, StepSlice, Timeline

Event = dict[str, Any]


def write(timeline: Timeline, path: Path) -> None:
    """One event a line, in order of time within each kind; CapplanError where that cannot be."""
    with writing(path) as stream:
        stream.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for number, event in enumerate(_events(timeline)):
            text = json.dumps(event, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            stream.write((",\n" if number else "") + text)
        stream.write("\n]}\n")


def _events(timeline: Timeline) -> Iterator[Event]:
    for replica, (steps, loads) in enumerate(zip(timeline.steps, timeline.loads, strict=True)):
        name = {"name": f"replica {replica}"}
        yield {"ph": "M", "name": "process_name", "pid": replica, "args": name}
        yield {"ph": "M", "name": "thread_name", "pid": replica, "tid": 0,
               "args": {"name": "steps"}}  # fmt: skip
        for step in steps:
            yield _step(step, replica)
        for load in loads:
            yield from _counters(load, replica)
    for row in timeline.requests:
        yield from _request(row)


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _step(step: StepSlice, replica: int) -> Event:
    name = f"prefill {step.prefill_tokens} tokens" if step.prefill_tokens else "decode"
    if step.num_steps > 1:
        name = f"{step.num_steps} decode steps"
    facts = {"decodes": step.num_decodes, "prefill_tokens": step.prefill_tokens}
    return {
        "ph": "X", "name": name, "cat": "step", "pid": replica, "tid": 0,
        "ts": _us(step.start_s), "dur": _us(step.duration_s),
        "args": {**facts, "steps": step.num_steps},
    }  # fmt: skip


def _counters(load: LoadSample, replica: int) -> Iterator[Event]:
    counters = {
        "requests": {"running": load.num_running, "waiting": load.num_waiting},
        "KV blocks": {"used": load.num_used_blocks},
    }
    for name, values in counters.items():
        yield {"ph": "C", "name": name, "pid": replica, "ts": _us(load.time_s), "args": values}


def _request(row: RequestRow) -> Iterator[Event]:
    end_s = row.finish_s
    if end_s is None:
        return
    same = {"cat": "request", "id": f"{row.replication}/{row.id}", "pid": row.replica or 0,
            "tid": 0}  # fmt: skip
    facts = {"prompt_tokens": row.prompt_tokens, "output_tokens": row.output_tokens,
             "end": row.end, "preemptions": row.num_preemptions}  # fmt: skip
    yield {"ph": "b", "name": row.id, "ts": _us(row.arrival_s), "args": facts, **same}
    if row.first_scheduled_s is not None and row.first_token_s is not None:
        phases = (
            ("queue", row.arrival_s, row.first_scheduled_s),
            ("prefill", row.first_scheduled_s, row.first_token_s),
            ("decode", row.first_token_s, end_s),
        )
        for name, start_s, stop_s in phases:
            yield {"ph": "b", "name": name, "ts": _us(start_s), **same}
            yield {"ph": "e", "name": name, "ts": _us(stop_s), **same}
    yield {"ph": "e", "name": row.id, "ts": _us(end_s), **same}
