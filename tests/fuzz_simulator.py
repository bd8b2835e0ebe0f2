"""Random scenarios: the counters, with and without recording, and the request-by-request path
against the naive reference.

    python tests/fuzz_simulator.py FIRST_SEED LAST_SEED
"""

from __future__ import annotations

import sys
import time
from typing import Any

from random_scenarios import scenario
from reference_scheduler import LivelockError
from reference_scheduler import replay as reference

from capplan.simulator.recorder import Recorder
from capplan.simulator.sequence import NO_STEP
from capplan.simulator.traces import (
    config_of,
    first_difference,
    replay,
    replay_in_detail,
    replay_results,
)

Json = dict[str, Any]
ONLY_RECORDED = ("stale_outputs", "wasted_tokens")


class CheckedRecorder(Recorder):
    """Conservation after every pass: blocks are free or held, tokens are within the budget."""

    def executed(
        self, replica: Any, now: Any, start: Any, dt: Any, chunks: Any, starved: Any, pre: Any
    ) -> None:
        super().executed(replica, now, start, dt, chunks, starved, pre)
        record = self.steps[-1]
        assert sum(record["sched"].values()) <= replica.config.max_num_batched_tokens
        assert len(replica.running) <= replica.config.slots
        size, named, nameless = replica.block_size, set(), 0
        for seq in replica.running:
            tokens = seq.computed
            if seq.last_step != NO_STEP:
                served = seq.request.id in record["sched"]
                tokens = replica.step + seq.offset + (served or seq in starved)
            own = seq.blocks if replica.cache else []
            named.update(own)
            nameless += -(-tokens // size) - len(own)
        assert replica.free + len(named) + nameless == replica.config.usable_blocks
        if replica.cache:
            replica.cache.table.settle(replica.free)
            assert replica.cache.table.num_free == replica.free


def difference(case: Json) -> tuple[str | None, int, int]:
    """(first difference, steps, preemptions) of one scenario."""
    config = config_of(case)
    try:
        expected = reference(case)
    except LivelockError:
        ends = {replay(case)["outcome"], replay_results(case, config)["outcome"]}
        return (None if ends == {"livelock"} else f"livelock ends as {ends}"), 0, 0
    counts = len(expected["steps"]), expected["summary"]["preemptions"]
    recorder = CheckedRecorder(asynchronous=config.async_scheduling)
    found = first_difference(expected, replay(case, recorder=recorder))
    if found:
        return f"recorded: {found}", *counts
    bare = {**replay_results(case, config), "steps": []}
    summary = {k: v for k, v in expected["summary"].items() if k not in ONLY_RECORDED}
    found = first_difference({**expected, "summary": summary, "steps": []}, bare)
    if found:
        return f"not recorded: {found}", *counts
    found = first_difference(expected, replay_in_detail(case, config))
    return (f"in detail: {found}" if found else None), *counts


def main(first: int, last: int) -> int:
    begin, steps, preemptions, different = time.monotonic(), 0, 0, 0
    for seed in range(first, last):
        try:
            found, more_steps, more_preemptions = difference(scenario(seed))
        except AssertionError as error:
            found, more_steps, more_preemptions = f"not conserved: {error!r}", 0, 0
        steps += more_steps
        preemptions += more_preemptions
        if found:
            different += 1
            print(f"seed {seed}: {found}")
    print(
        f"{last - first} cases, {steps} steps, {preemptions} preemptions, "
        f"{different} different, {time.monotonic() - begin:.0f} s"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
