"""Scenario files: recorded runs of an engine's scheduler, replayed and compared."""

from __future__ import annotations

from typing import Any

from capplan.simulator.config import CURRENT, EngineRules, KvGroup, SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.recorder import Recorder
from capplan.simulator.requests import Outcome, Request, RequestRecord, Segment
from capplan.simulator.step_time import AffineStepTime

Json = dict[str, Any]
NOT_COMPARED = {"empty_passes"}  # depends on details of the engine's loop


def requests_of(entries: list[Json]) -> list[Request]:
    """The requests of a scenario, in the order in which the engine gets them."""
    by_id = {entry["id"]: entry for entry in entries}
    parents = {entry["parent"] for entry in entries if "parent" in entry}
    made: dict[str, Request] = {}

    def make(entry: Json) -> Request:
        if entry["id"] not in made:
            prefix: list[Segment] = []
            if "parent" in entry:
                parent = make(by_id[entry["parent"]])
                prefix = [*_clipped(parent), parent.own_segment]
            elif "prefix_id" in entry:
                prefix = [(entry["prefix_id"], entry["prefix_len"])]
            prefix += [(stream, tokens) for stream, tokens in entry.get("prefix_chain", [])]
            made[entry["id"]] = Request(
                entry["id"],
                entry["arrival_s"],
                entry["prompt_len"],
                entry["output_len"],
                max_tokens=entry.get("max_tokens"),
                priority=entry.get("priority", 0),
                prefix=tuple(prefix),
                reused=entry["id"] in parents,
                accepted_drafts=tuple(entry.get("accept", ())),
            )
        return made[entry["id"]]

    return sorted((make(entry) for entry in entries), key=lambda request: request.arrival_s)


def _clipped(request: Request) -> list[Segment]:
    """The shared part of its prompt."""
    left, chain = request.prompt_tokens, []
    for stream, tokens in request.prefix:
        if min(tokens, left):
            chain.append((stream, min(tokens, left)))
            left -= chain[-1][1]
    return chain


def config_of(scenario: Json, rules: EngineRules = CURRENT) -> SchedulerConfig:
    """The settings of a scenario; `rules` of another engine version apply where given."""
    names = SchedulerConfig.__dataclass_fields__
    options = {name: value for name, value in scenario["config"].items() if name in names}
    options["async_scheduling"] = scenario.get("mode") == "async"
    options["rules"] = rules
    if not rules.checks_the_full_prompt:
        options["scheduler_reserve_full_isl"] = False
    groups = [KvGroup(**group) for group in options.get("kv_groups", ())]
    options["kv_groups"] = tuple(groups)
    return SchedulerConfig(**options)


def replay(scenario: Json, rules: EngineRules = CURRENT, recorder: Recorder | None = None) -> Json:
    """Simulate a scenario; the answer has the form of what it recorded."""
    config = config_of(scenario, rules)
    if not config.is_plain:
        return replay_in_detail(scenario, config)
    if recorder is None:
        recorder = Recorder(asynchronous=config.async_scheduling)
    result = replay_results(scenario, config, recorder)
    recorded = {"stale_outputs": recorder.num_stale, "wasted_tokens": recorder.num_wasted_tokens}
    return {**result, "summary": result["summary"] | recorded, "steps": recorder.steps}


def replay_results(
    scenario: Json, config: SchedulerConfig, recorder: Recorder | None = None
) -> Json:
    """By the counters: what became of each request, and the summary. Steps go to a recorder."""
    records: dict[str, RequestRecord] = {}

    def keep(record: RequestRecord) -> None:
        records[record.id] = record

    step_time = AffineStepTime(**scenario["step_time"])
    replica = Replica(config, step_time, keep, recorder, reject=False)
    outcome = replica.run(requests_of(scenario["requests"]))
    left = {seq.request.id: seq for seq in replica.present()}
    per_request = []
    for entry in scenario["requests"]:
        record = records.get(entry["id"])
        if record is None:
            seq = left[entry["id"]]
            record = seq.record()._replace(output_tokens=seq.outputs_before(replica.step))
            per_request.append(
                _request_json(record, finished=False, admitted=seq.first_scheduled_s >= 0)
            )
        else:
            per_request.append(_request_json(record, finished=True, admitted=True))
    return {
        "summary": _summary(outcome, records, scenario, config),
        "per_request": per_request,
        "outcome": outcome.end,
    }


def replay_in_detail(scenario: Json, config: SchedulerConfig) -> Json:
    """The same, request by request, for what the counters do not cover."""
    records: dict[str, RequestRecord] = {}
    step_time = AffineStepTime(**scenario["step_time"])
    replica = DetailedReplica(
        config,
        step_time,
        lambda record: records.__setitem__(record.id, record),
        record_steps=True,
        reject=False,
    )
    outcome = replica.run(requests_of(scenario["requests"]))
    left = {s.request.id: s for s in replica.scheduler.present()}
    per_request = []
    for entry in scenario["requests"]:
        record = records.get(entry["id"])
        if record is None:
            seq = left[entry["id"]]
            record = seq.record()._replace(output_tokens=seq.outputs)
        finished, admitted = entry["id"] not in left, record.first_scheduled_s >= 0
        per_request.append(_request_json(record, finished=finished, admitted=admitted))
    summary = _summary(outcome, records, scenario, config)
    summary |= {"stale_outputs": replica.num_stale, "wasted_tokens": replica.num_wasted}
    summary |= {"drafts": replica.num_drafts, "accepted": replica.num_accepted}
    return {
        "summary": summary,
        "per_request": per_request,
        "steps": replica.steps,
        "outcome": outcome.end,
    }


def _request_json(record: RequestRecord, *, finished: bool, admitted: bool) -> Json:
    return {
        "id": record.id,
        "arrival_s": record.arrival_s,
        "first_sched_s": record.first_scheduled_s if admitted else None,
        "ttft_s": record.ttft_s if record.first_token_s >= 0 else None,
        "finish_s": record.finish_s if finished else None,
        "output_tokens": record.output_tokens,
        "preemptions": record.num_preemptions,
        "cached_tokens": record.cached_tokens if admitted else None,
        "resume_cached_tokens": list(record.resume_cached_tokens),
    }


def _summary(
    outcome: Outcome, records: dict[str, RequestRecord], scenario: Json, config: SchedulerConfig
) -> Json:
    end_s = outcome.end_s
    if config.async_scheduling or config.num_speculative_tokens:
        end_s = max((r.finish_s for r in records.values()), default=0.0)
    left = set(outcome.unfinished)
    return {
        "num_steps": outcome.num_steps,
        "end_s": end_s,
        "stalled": outcome.end == "stalled",
        "unfinished": [entry["id"] for entry in scenario["requests"] if entry["id"] in left],
        "tokens": outcome.scheduled_tokens,
        "preemptions": outcome.num_preemptions,
        "empty_steps": outcome.num_empty_passes,
        "max_running": outcome.max_running,
    }


def first_difference(expected: Json, got: Json) -> str | None:
    """Where a replay leaves the recording, or None. The order of every list and map counts."""
    pairs = zip(expected["steps"], got["steps"], strict=False)
    for number, (want, have) in enumerate(pairs):
        if text := _differs(want, have, set()):
            return f"step {number}: {text}"
    if len(expected["steps"]) != len(got["steps"]):
        return f"{len(expected['steps'])} steps recorded, {len(got['steps'])} simulated"
    for want, have in zip(expected["per_request"], got["per_request"], strict=True):
        if text := _differs(want, have, set()):
            return f"request {want['id']}: {text}"
    text = _differs(expected["summary"], got["summary"], NOT_COMPARED)
    return f"summary: {text}" if text else None


def _differs(want: Json, have: Json, skip: set[str]) -> str | None:
    for name, value in want.items():
        if name in skip:
            continue
        if name not in have or _ordered(value) != _ordered(have[name]):
            return f"{name} recorded {value}, simulated {have.get(name)}"
    return None


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, _ordered(item)) for name, item in value.items()]
    return value
