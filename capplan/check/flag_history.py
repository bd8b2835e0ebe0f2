"""Options that versions of vLLM ignore or no longer take, each with where that was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """``ignored`` and ``removed``: the first version that does; None where none does."""

    flag: str
    ignored: str | None
    removed: str | None
    instead: str
    source: str


VLLM_CHANGES: tuple[Change, ...] = (
    Change(
        "swap-space",
        "0.8",
        "0.18",
        "leave it out: preempted requests are computed again",
        "EngineArgs of 0.15 to 0.29 compared (unsloth-zoo issue 1210); the V1 core never swaps",
    ),
    Change(
        "num-scheduler-steps",
        "0.8",
        "0.10.1",
        "leave it out: async-scheduling does what it was for",
        "vllm pull request 22779 (13 August 2025), released with 0.10.1",
    ),
    Change(
        "multi-step-stream-outputs",
        "0.8",
        "0.10.1",
        "leave it out",
        "vllm pull request 22779 (13 August 2025), released with 0.10.1",
    ),
    Change(
        "enable-reasoning",
        "0.9",
        "0.10",
        "leave it out: reasoning-parser alone switches it on",
        "vllm issue 18538: deprecated in 0.9.0, unrecognised in 0.10.0",
    ),
    Change(
        "max-seq-len-to-capture",
        "0.8",
        "0.11",
        "leave it out (max-cudagraph-capture-size limits the batch of graphs)",
        "vllm pull request 25543; NeMo Curator pull request 1200 (gone in 0.11.0)",
    ),
    Change(
        "use-v2-block-manager",
        "0.7",
        None,
        "leave it out",
        'help text of 0.7: "has no effect on vLLM behavior"',
    ),
    Change(
        "disable-log-requests",
        "0.10.1",
        None,
        "leave it out: requests are logged only with enable-log-requests",
        "vllm pull request 21739 (August 2025)",
    ),
    Change(
        "preemption-mode",
        "0.8",
        None,
        "leave it out: the V1 core always recomputes",
        "V1 scheduler rules (docs/simulator.md)",
    ),
    Change(
        "scheduler-delay-factor",
        "0.8",
        None,
        "leave it out: the V1 core schedules every step",
        "V1 scheduler rules (docs/simulator.md)",
    ),
    Change(
        "num-lookahead-slots",
        "0.8",
        None,
        "leave it out: speculative-config decides",
        "V1 scheduler rules (docs/simulator.md)",
    ),
)
BY_FLAG = {change.flag: change for change in VLLM_CHANGES}
