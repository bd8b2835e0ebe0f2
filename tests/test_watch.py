"""What a watch is told: every gap between tokens, every token, and the load, on both paths."""

from __future__ import annotations

import pytest
from random_scenarios import scenario

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.core import Replica
from capplan.simulator.detailed_clock import DetailedReplica
from capplan.simulator.requests import Outcome, RequestRecord
from capplan.simulator.step_time import AffineStepTime
from capplan.simulator.traces import config_of, requests_of

SEEDS = range(150)


class Expanded:
    """Keeps everything, one entry a gap."""

    def __init__(self) -> None:
        self.all_gaps: list[float] = []
        self.tokens = 0
        self.busy_s = 0.0
        self.loads: list[tuple[float, int, int, int]] = []

    def step(self, start_s: float, step_s: float, num_decodes: int, prefill_tokens: int) -> None:
        assert start_s >= 0
        self.tokens += num_decodes + prefill_tokens
        self.busy_s += step_s

    def gaps(self, gap_s: float, count: int) -> None:
        assert count > 0
        self.all_gaps += [gap_s] * count

    def stretch(
        self, start_s: float, num_steps: int, num_decodes: int, context: int, base_s: float,
        slope_s: float,
    ) -> None:  # fmt: skip
        for k in range(num_steps):
            step_s = base_s + slope_s * (context + k * num_decodes)
            self.step(start_s, step_s, num_decodes, 0)
            self.gaps(step_s, num_decodes)
            start_s += step_s

    def load(self, time_s: float, running: int, waiting: int, used: int) -> None:
        self.loads.append((time_s, running, waiting, used))


def _run(seed: int, detailed: bool) -> tuple[Expanded, Outcome, list[RequestRecord]]:
    case = scenario(seed)
    config: SchedulerConfig = config_of(case)
    watch, records = Expanded(), list[RequestRecord]()
    step_time = AffineStepTime(**case["step_time"])
    make = DetailedReplica if detailed else Replica
    replica = make(config, step_time, records.append, watch=watch)
    outcome = replica.run(requests_of(case["requests"]))
    return watch, outcome, records


@pytest.mark.parametrize("seed", SEEDS)
def test_every_gap_is_told(seed: int) -> None:
    """Gaps sum to last - first token, and there is one fewer than tokens, for all requests."""
    watch, outcome, records = _run(seed, detailed=False)
    detail, _, _ = _run(seed, detailed=True)
    if outcome.end == "finished":
        assert len(watch.all_gaps) == sum(r.output_tokens - 1 for r in records)
        expected = sum(r.finish_s - r.first_token_s for r in records)
        assert sum(watch.all_gaps) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert sorted(watch.all_gaps) == pytest.approx(sorted(detail.all_gaps), rel=1e-9)
    assert watch.busy_s == pytest.approx(outcome.busy_s, rel=1e-9, abs=1e-12)
    times = [time for time, *_ in watch.loads]
    assert times == sorted(times)
    assert max((running for _, running, _, _ in watch.loads), default=0) == outcome.max_running
    usable = config_of(scenario(seed)).usable_blocks
    assert all(0 <= used <= usable for *_, used in watch.loads)
